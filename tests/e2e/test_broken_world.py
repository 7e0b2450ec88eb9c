"""Disks that are full or read-only, damaged files, clocks that jump, servers and engines that fail: what is paid for is
kept, what is wrong is said in a sentence, and the same command goes on.

An engine that goes away while report.py scores: test_swebench.py; broken lines of a prediction file: test_bad_input.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrial.store.runs import Run as Stored
from retrial.system.locks import SCORING
from tests.conftest import PROJECT, Run
from tests.parts import missing, ready
from tests.support import engines, servers
from tests.support.exercises import RIGHT, reply, write_exercise, write_replies
from tests.support.servers import Answer, Asked, ChatServer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]
DISK_MB = 80


class Disk:
    """A small file system that only some processes see; its files can be looked at from here too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        script = f'mount -t tmpfs -o size={DISK_MB}m none "$1" && echo here && exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "sh", folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._holder.stdout and self._holder.stderr
        if self._holder.stdout.readline() != "here\n":
            _, error = self._holder.communicate("")
            missing("mounts", error.strip() or "nothing can be mounted here")
        self.seen = Path(f"/proc/{self._holder.pid}/root{folder}")
        self._enter = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"]

    def run(self, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """A program that has its home there."""
        command = [*self._enter, sys.executable, str(PROJECT / script), *map(str, arguments)]
        environment = {**os.environ, "RETRIAL_HOME": str(self.folder), "OPENAI_API_KEY": "sk-test-12345678"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)

    def protect(self) -> None:
        """Make it read-only for all that is opened from now on."""
        self._mount("--bind", str(self.folder))
        self._mount("-o", "remount,bind,ro")

    def release(self) -> None:
        subprocess.run([*self._enter, "umount", self.folder], check=True)

    def _mount(self, *options: str) -> None:
        subprocess.run([*self._enter, "mount", *options, self.folder], check=True)

    def fill(self, left: int) -> None:
        """Until only so many bytes are free."""
        free = os.statvfs(self.seen)
        with (self.seen / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - left)

    def make_room(self) -> None:
        (self.seen / "filler").unlink()

    def close(self) -> None:
        self._holder.communicate("")


@pytest.fixture
def disk(tmp_path: Path, home: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    yield found
    found.close()


def tasks(tmp_path: Path, number: int) -> Path:
    for place in range(number):
        write_exercise(tmp_path / "bench", f"sum-{place}")
    return tmp_path / "bench"


def right(asked: Asked) -> Answer:
    """Solves the task that it is asked about."""
    [path] = set(re.findall(r"sum_\d+\.py", json.dumps(asked.body["messages"][-1])))
    return servers.reply(reply(RIGHT, path))


def asking(server: ChatServer, bench: Path, *more: object) -> tuple[object, ...]:
    where = ("-b", bench, "-m", "openai/some", "--api-base", server.url, "--price", "1/1")
    return *where, "--sandbox", "bwrap", "--edit-format", "whole", "--tries", 1, "--run", "it", *more


def predictions(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_bytes()) for path in sorted(folder.glob("aider_*.json"))}


@pytest.mark.parametrize("left", [5_000_000, 0])
def test_a_disk_that_fills_up_ends_the_run_and_nothing_paid_for_is_lost(disk: Disk, tmp_path: Path, left: int) -> None:
    def fill(asked: Asked) -> Answer:
        if len(server.requests) == 1:
            disk.fill(left)
        return right(asked)

    with ChatServer([fill]) as server:
        arguments = asking(server, tasks(tmp_path, 3), "--jobs", 1)
        stopped = disk.run("harness.py", *arguments)
        assert stopped.returncode == 1, stopped.stderr
        assert f"MB are free in {disk.folder}" in stopped.stderr and "the same command goes on" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        assert len(server.requests) == 1
        [journal] = (disk.seen / "predictions" / "it" / "journal").glob("*.jsonl")
        assert "return a + b" in journal.read_text()
        # Still full: nothing is asked.
        assert disk.run("harness.py", *arguments).returncode == 1
        assert len(server.requests) == 1
        disk.make_room()
        again = disk.run("harness.py", *arguments)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == 3
    assert len(predictions(disk.seen / "predictions" / "it")) == 3
    assert not list(disk.seen.rglob(".reserve"))


def test_a_read_only_home_is_said_before_anything_is_asked(disk: Disk, tmp_path: Path) -> None:
    disk.protect()
    with ChatServer([right]) as server:
        done = disk.run("harness.py", *asking(server, tasks(tmp_path, 1)))
    assert done.returncode == 2, done.stderr
    assert f"{disk.folder}/predictions/it cannot be written to: Read-only file system" in done.stderr
    assert server.requests == []
    scored = disk.run("report.py", "--gold", "-b", tmp_path / "bench", "--sandbox", "bwrap")
    assert scored.returncode == 2 and "cannot be written to" in scored.stderr


def test_a_home_that_becomes_read_only_ends_the_run_with_a_sentence(disk: Disk, tmp_path: Path) -> None:
    def protect(asked: Asked) -> Answer:
        if len(server.requests) == 2:
            disk.protect()
        return right(asked)

    with ChatServer([protect]) as server:
        arguments = asking(server, tasks(tmp_path, 4), "--jobs", 1)
        done = disk.run("harness.py", *arguments)
        assert done.returncode == 1, done.stderr
        assert "Read-only file system" in done.stderr and "Traceback" not in done.stderr
        assert len(server.requests) == 2
        disk.release()
        assert len(predictions(disk.seen / "predictions" / "it")) == 1
        again = disk.run("harness.py", *arguments)
        assert again.returncode == 0, again.stderr
        # What could not be written down is asked again.
        assert len(server.requests) == 5
    assert len(predictions(disk.seen / "predictions" / "it")) == 4


def test_a_run_whose_folder_vanishes_ends_and_keeps_what_came_of_its_last_question(
    run: Run, home: Path, tmp_path: Path
) -> None:
    folder = home / "predictions" / "it"

    def take_away(asked: Asked) -> Answer:
        folder.rename(tmp_path / "elsewhere")
        return right(asked)

    with ChatServer([take_away]) as server:
        arguments = asking(server, tasks(tmp_path, 3), "--jobs", 1)
        done = run("harness.py", *arguments, OPENAI_API_KEY="sk-test-12345678")
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert f"{folder} is not the folder that it was" in done.stderr
        assert f"{folder}/run.json is missing" in done.stderr
        [journal] = (folder / "journal").glob("*.jsonl")
        assert "return a + b" in journal.read_text()
        again = run("harness.py", *arguments, OPENAI_API_KEY="sk-test-12345678")
        assert again.returncode == 2 and "holds journals, but no run.json" in again.stderr
        assert len(server.requests) == 1


def solved(run: Run, tmp_path: Path, number: int) -> tuple[object, ...]:
    """A finished run `it` of so many tasks; gives its arguments."""
    bench = tasks(tmp_path, number)
    lines = [{"text": reply(RIGHT, f"sum_{each}.py"), "match": f"files: sum_{each}.py\n"} for each in range(number)]
    replies = write_replies(tmp_path / "replies.jsonl", *lines)
    arguments = ("-b", bench, "-m", f"replay/{replies}", "--sandbox", "bwrap", "--tries", 1, "--run", "it")
    done = run("harness.py", *arguments)
    assert done.returncode == 0, done.stderr
    return arguments


def also_started(home: Path, when: str) -> None:
    """Another run, like `it`."""
    stored = json.loads((home / "predictions" / "it" / "run.json").read_text())
    (home / "predictions" / "other").mkdir()
    (home / "predictions" / "other" / "run.json").write_text(json.dumps({**stored, "run": "other", "started": when}))


def test_damaged_files_are_named_set_aside_and_made_anew(run: Run, home: Path, tmp_path: Path) -> None:
    arguments, folder = solved(run, tmp_path, 4), home / "predictions" / "it"
    before = predictions(folder)
    torn, other, empty, whole = sorted(folder.glob("aider_*.json"))
    config = (folder / "run.json").read_bytes()
    torn.write_bytes(torn.read_bytes()[:-100])
    other.write_text(json.dumps({**before[other.name], "all_results": "none"}))
    empty.write_text("")
    whole_time = whole.stat().st_mtime_ns
    Path(f"{empty}.damaged").write_text("from an earlier time")
    (folder / "run.json").write_text(config.decode()[:50])

    refused = run("report.py", "it", "--sandbox", "bwrap")
    assert refused.returncode == 2
    assert all(f"{path} is not" in refused.stderr for path in (torn, other, empty))
    again = run("harness.py", *arguments)
    assert again.returncode == 0, again.stderr
    assert f"note: {torn} is not valid JSON" in again.stderr
    assert predictions(folder).keys() == before.keys()
    assert whole.stat().st_mtime_ns == whole_time
    aside = {path.name for path in folder.glob("*.damaged*")}
    assert aside == {
        f"{torn.name}.damaged", f"{other.name}.damaged", f"{empty.name}.damaged", f"{empty.name}.damaged-2",
        "run.json.damaged",
    }  # fmt: skip
    assert Path(f"{empty}.damaged").read_text() == "from an earlier time"
    assert json.loads((folder / "run.json").read_text())["first_started"] == json.loads(config)["first_started"]


def test_one_byte_of_a_prediction_is_enough_to_be_noticed(run: Run, home: Path, tmp_path: Path) -> None:
    arguments, folder = solved(run, tmp_path, 3), home / "predictions" / "it"
    before = predictions(folder)
    patched, named, edited = sorted(folder.glob("aider_*.json"))
    patched.write_bytes(patched.read_bytes().replace(b"return a + b", b"return a * b", 1))
    named.write_bytes(named.read_bytes().replace(b'"model_seconds"', b'"lodel_seconds"'))
    # By hand, or by a version that knew no checksums: then what it looks like tells.
    record = json.loads(edited.read_text())
    del record["crc"], record["all_results"][0]["model_seconds"]
    edited.write_text(json.dumps(record))
    refused = run("report.py", "it", "--sandbox", "bwrap")
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert f"{patched} is not as it was written" in refused.stderr
    assert all(f"{path} is not" in refused.stderr for path in (named, edited))
    again = run("harness.py", *arguments)
    assert again.returncode == 0, again.stderr
    found = predictions(folder)
    assert {name: each["model_patch"] for name, each in found.items()} == {
        name: each["model_patch"] for name, each in before.items()
    }
    del (without := json.loads(patched.read_text()))["crc"]
    patched.write_text(json.dumps(without))
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0


def test_the_latest_run_is_found_also_when_its_settings_are_damaged(run: Run, home: Path, tmp_path: Path) -> None:
    solved(run, tmp_path, 1)
    also_started(home, "2020-01-01T00:00:00+00:00")
    (home / "predictions" / "it" / "run.json").write_text("{")
    assert "predictions/it/results.json" in run("report.py", "--sandbox", "bwrap").stdout


def test_a_run_whose_settings_are_lost_is_not_gone_on_with(run: Run, home: Path, tmp_path: Path) -> None:
    arguments, folder = solved(run, tmp_path, 1), home / "predictions" / "it"
    (folder / "run.json").unlink()
    changed = run("harness.py", *arguments, "--turns", 7)
    assert (changed.returncode, "turns: 2 then, 7 now" in changed.stderr) == (2, True)
    (folder / "run.json").write_text("{")
    (folder / "run.json.copy").write_text("{")
    refused = run("harness.py", *arguments)
    assert refused.returncode == 2
    assert "run.json" in refused.stderr and "name another run" in refused.stderr
    assert len(predictions(folder)) == 1


def test_a_thousand_broken_predictions_are_refused_at_once_with_the_first_twenty(
    run: Run, home: Path, tmp_path: Path
) -> None:
    solved(run, tmp_path, 1)
    for number in range(1000):
        (home / "predictions" / "it" / f"broken-{number:04}.json").write_text("{" * number)
    before = {path.name for path in (home / "predictions" / "it").iterdir()}
    refused = run("report.py", "it", "--sandbox", "bwrap")
    assert refused.returncode == 2
    assert refused.stderr.count("is not valid JSON") == 20
    assert "… and 980 more" in refused.stderr and "The same harness.py command" in refused.stderr
    assert {path.name for path in (home / "predictions" / "it").iterdir()} == before


def test_verdicts_and_results_that_are_damaged_are_made_anew(run: Run, home: Path, tmp_path: Path) -> None:
    solved(run, tmp_path, 1)
    folder = home / "predictions" / "it"
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0
    before = json.loads((folder / "results.json").read_text())["resolved"]
    derived = [folder / "results.json", folder / "all_preds.jsonl", *(tmp_path / "cache" / "verdicts").rglob("*.json")]
    assert len(derived) >= 3
    for path in derived:
        path.write_bytes(path.read_bytes()[:20])
    again = run("report.py", "it", "--sandbox", "bwrap")
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "results.json").read_text())["resolved"] == before


def test_one_process_scores_a_run_at_a_time_and_says_who(run: Run, home: Path, tmp_path: Path) -> None:
    arguments = solved(run, tmp_path, 1)
    with Stored(home, "it").lock(SCORING):
        refused = run("report.py", "it", "--sandbox", "bwrap")
        # It may be scored while it goes on.
        assert run("harness.py", *arguments).returncode == 0
    assert refused.returncode == 2
    assert f"is being scored by another process (pid {os.getpid()} on " in refused.stderr
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0


def test_a_clock_that_was_wrong_does_not_hide_the_latest_run(run: Run, home: Path, tmp_path: Path) -> None:
    solved(run, tmp_path, 1)
    also_started(home, "2999-01-01T00:00:00+00:00")
    done = run("report.py", "--sandbox", "bwrap")
    assert "predictions/it/results.json" in done.stdout


def test_only_calendars_are_read_from_the_clock_that_can_be_set() -> None:
    """A date in a header is such a time, and so is when an image was last used."""
    allowed = {"retrial/models/failures.py", "retrial/sandboxes/docker/image_cache.py"}
    found = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "retrial").rglob("*.py")
        if "time.time()" in path.read_text()
    }
    assert found <= allowed


def test_a_server_that_fails_every_other_request_costs_patience_only(run: Run, home: Path, tmp_path: Path) -> None:
    lock, seen = threading.Lock(), list[str]()

    def half(asked: Asked) -> Answer:
        with lock:
            question = json.dumps(asked.body["messages"])
            seen.append(question)
            failed = seen.count(question) == 1
        return servers.status(503, "overloaded", headers={"Retry-After": "0"}) if failed else right(asked)

    with ChatServer([half]) as server:
        done = run("harness.py", *asking(server, tasks(tmp_path, 6)), OPENAI_API_KEY="sk-test-12345678")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 12
    assert all(found["plausible"] for found in predictions(home / "predictions" / "it").values())


def test_an_engine_that_is_restarted_costs_what_was_under_way_and_no_question_twice(
    run: Run, home: Path, tmp_path: Path
) -> None:
    ready("docker")
    slow = f"import subprocess\nsubprocess.run(['sleep', '5'])\n{RIGHT}"

    def answer(asked: Asked) -> Answer:
        return servers.reply(reply(slow, "sum_0.py"))

    with ChatServer([answer]) as server, engines.Wire(tmp_path) as wire, engines.engine() as client:
        arguments = (*asking(server, tasks(tmp_path, 1)), "--sandbox", "docker")
        environment = {**os.environ, "DOCKER_HOST": wire.address, "OPENAI_API_KEY": "sk-test-12345678"}
        command = [sys.executable, str(PROJECT / "harness.py"), *map(str, arguments)]
        harness = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        engines.running(client, harness.pid, "sleep 5")
        wire.cut()
        said, _ = harness.communicate(timeout=120)
        assert harness.returncode == 1
        assert "Not measured: 1 of 1 tasks" in said
        wire.mend()
        again = run("harness.py", *arguments, OPENAI_API_KEY="sk-test-12345678", DOCKER_HOST=wire.address)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == 1
        assert client.containers(all=True, filters={"label": f"retrial.pid={harness.pid}"}) == []
    [found] = predictions(home / "predictions" / "it").values()
    assert found["plausible"]
