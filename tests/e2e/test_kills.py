"""kill -9 at random moments of each phase, twenty times in the full suite: nothing is lost or done twice.

RETRIAL_SEED draws other moments, RETRIAL_KILLS sets their number.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrial.store.runs import Run
from retrial.system import locks
from tests.conftest import PROJECT, own_cache
from tests.e2e.test_orphans import left_by
from tests.parts import ready
from tests.support.counting_model import Question, question
from tests.support.exercises import RIGHT, write_exercise
from tests.tiers import TIER

pytestmark = [pytest.mark.real, pytest.mark.scaled]

JOBS = 4
TASKS, KILLS = (40, 20) if TIER == "all" else (10, 3)
KILLS = int(os.environ.get("RETRIAL_KILLS") or KILLS)
SEED = int(os.environ.get("RETRIAL_SEED") or 7)
CLOCK = ("seconds", "cpu_seconds", "model_seconds", "duration", "seconds_per_case", "time")
OWN = (*CLOCK, "cached", "stdout", "run", "dirname", "command", "unsettled")
"""What a clock said, what was known already, what a runner prints (a canary lies anywhere), what a run is called, and
what replies that died on their way may have cost."""
LONGEST = 0.6
"""Seconds from the drawn moment of progress to the kill, at most: so that it hits anything between two of them."""


def unmeasured(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmeasured(each) for name, each in value.items() if name not in OWN}
    return [unmeasured(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Sent:
    """One request as the server saw it: the time of each event."""

    question: Question
    events: Mapping[str, float]


class Counting:
    """The model server, and what it has counted."""

    def __init__(self, log: Path, url: str) -> None:
        self._log, self.url = log, url

    def requests(self, event: str = "arrived") -> list[Question]:
        """Questions, in the order of the events."""
        return [asked for what, asked, _, _ in self._events() if what == event]

    def log(self) -> list[Sent]:
        """All requests, in the order of their arrival."""
        found: dict[int, Sent] = {}
        for what, asked, number, seconds in self._events():
            before = found.get(number, Sent(asked, {}))
            found[number] = replace(before, events={**before.events, what: seconds})
        return [found[number] for number in sorted(found)]

    def _events(self) -> Iterator[tuple[str, Question, int, float]]:
        for line in self._log.read_text().splitlines():
            if line.endswith("]"):
                what, (task, model, seed, turn), number, seconds = json.loads(line)
                yield what, (task, model, seed, turn), number, seconds

    def release(self) -> None:
        Path(f"{self._log}.release").touch()


@contextmanager
def counting(log: Path, held: int = 0) -> Iterator[Counting]:
    command = [sys.executable, "-m", "tests.support.counting_model", str(log), str(held)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT)
    try:
        assert process.stdout
        yield Counting(log, process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Place:
    """A home, a cache, and a benchmark."""

    folder: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "RETRIAL_HOME": str(self.folder), "RETRIAL_CACHE": str(self.cache)}

    def command(self, script: str, *arguments: object) -> list[str]:
        return [sys.executable, str(PROJECT / script), *map(str, arguments)]

    def harness(self, run: str, server: Counting) -> list[str]:
        return self.command(
            *("harness.py", "-b", self.folder / "bench", "-m", "m-one:whole", "-m", "m-two:whole", "--run", run),
            *("--api-base", server.url, "--price", "1/2", "--tries", 2, "--reflections", 1, "--jobs", JOBS),
            *("--sandbox", "bwrap", "--test-jobs", 2),
        )

    def report(self, run: str) -> list[str]:
        return self.command("report.py", run, "--sandbox", "bwrap", "--test-jobs", 2)

    def run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr

    def kill(self, command: Sequence[str], reached: Callable[[], bool], delay: float) -> float:
        """Start it, kill it with its descendants a moment after it has come so far, and return the time of that."""
        with (self.folder / "killed.log").open("ab") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
            try:
                while not reached():
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.01)
                        break
                with suppress(subprocess.TimeoutExpired):
                    process.wait(delay)
                assert process.poll() is None, f"it ended before it was killed: {log.name}"
            finally:
                descendants = tree(process.pid)
                killed = time.time()
                for pid in descendants:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
        return killed


def tree(root: int) -> list[int]:
    """The process and all its descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def moments(whole: int) -> list[tuple[int, float]]:
    """(Progress, seconds after it), one in each of as many equal parts of the run."""
    draw = random.Random(SEED)
    return [(int((part + draw.random()) / KILLS * whole), draw.uniform(0, LONGEST)) for part in range(KILLS)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    ready("bwrap")
    folder = tmp_path_factory.mktemp("kills")
    for number in range(TASKS):
        # Where the reference is what the model writes, its run is the prediction's too.
        example = RIGHT if number % 2 else RIGHT.replace("a + b", "b + a")
        write_exercise(folder / "bench", f"sum-{number}", example=example)
    return Place(folder, own_cache(folder / "cache"))


@pytest.fixture(scope="module")
def undisturbed(place: Place) -> list[Question]:
    """What a run `whole` asked."""
    with counting(place.folder / "whole.log") as server:
        place.run(place.harness("whole", server))
        return server.requests()


def predictions(place: Place, run: str) -> dict[str, Any]:
    found = Run(place.folder, run)
    ids = [record.instance_id for record in found.predictions()]
    return {instance_id: unmeasured(found.stored_prediction(instance_id)) for instance_id in ids}


def asked_in(run: Run, event: str) -> list[Question]:
    """The questions of a run's journals, by what came of them."""
    found, questions = [], dict[tuple[object, ...], Question]()
    for path in run.journal_paths():
        for line in map(json.loads, run.journal(path.stem).content().splitlines()):
            key = (path.stem, line.get("go"), line.get("attempt"), line.get("call"))
            if line["event"] == "request":
                questions[key] = question(line["model"], line["request"])
            if line["event"] == event:
                found.append(questions[key])
    return found


@dataclass(frozen=True)
class Killed:
    """A run that was killed again and again, and resumed to its end."""

    run: Run
    answered: Sequence[tuple[int, set[Question]]]
    """At each kill: how many requests had arrived, and which questions were answered by then."""
    times: Sequence[float]
    """When each kill happened, by the server's clock."""
    log: Sequence[Sent]
    """What the server saw."""
    owners: Sequence[str]
    """The names of the processes that were killed."""
    command: Sequence[str]

    @property
    def arrived(self) -> list[Question]:
        return [each.question for each in self.log]

    def repeated(self) -> list[Sent]:
        """The requests that were sent once more later."""
        return [each for place, each in enumerate(self.log) if each.question in self.arrived[place + 1 :]]

    def explained(self, repeated: Sent) -> str:
        """Why the answer to a request that was repeated is in no journal; empty if nothing explains it."""
        events, arrived = repeated.events, repeated.events["arrived"]
        killed = next((each for each in self.times if each > arrived), None)
        if killed is None:
            return ""
        if "sent" not in events or events["sent"] > killed:
            return "killed before the answer was sent"
        before = f"{(killed - events['sent']) * 1000:.0f} ms before the kill"
        if "unread" in events:
            return f"the answer was sent {before} and not yet read"
        task, since = repeated.question[0], events["sent"]
        # An answer may only be used once it is on disk.
        used = any(each.question[0] == task and since < each.events["arrived"] < killed for each in self.log)
        return "" if used else f"the answer was sent {before}, read, and not yet on disk"


def answered(run: Run) -> set[Question]:
    return set(asked_in(run, "reply"))


@pytest.fixture(scope="module")
def killed(place: Place, undisturbed: list[Question]) -> Killed:
    run, whole, found, names = Run(place.folder, "killed"), len(undisturbed), [], set[str]()
    times = list[float]()
    print(f"RETRIAL_SEED={SEED}: {TASKS} tasks, {whole} questions")
    # The last question waits until all kills are done: a run cannot be over before.
    with counting(place.folder / "killed-server.log", held=whole) as server:
        for progress, delay in moments(whole - 1):
            times.append(place.kill(place.harness("killed", server), partial(asked_so_far, server, progress), delay))
            found.append((len(server.requests()), answered(run)))
            names |= {path.name for path in (place.cache / locks.ALIVE).glob("*")}
            print(f"  killed with {len(found[-1][1])} answered, {len(finished(run))} tasks finished")
        server.release()
        command = place.harness("killed", server)
        place.run(command)
    return Killed(run, found, times, server.log(), sorted(names), command)


def asked_so_far(server: Counting, number: int) -> bool:
    return len(set(server.requests())) >= number


def finished(run: Run) -> list[Path]:
    return sorted(run.folder.glob("aider_*.json"))


@pytest.mark.smoke
def test_kills_of_harness_py_change_nothing(place: Place, undisturbed: list[Question], killed: Killed) -> None:
    expected = predictions(place, "whole")
    assert predictions(place, "killed") == expected
    assert len(expected) == TASKS
    assert {len(record["all_results"]) for record in expected.values()} == {1, 2, 3, 4}
    assert Counter(record["plausible"] for record in expected.values()) == {True: TASKS * 9 // 10, False: TASKS // 10}
    for path in finished(killed.run):
        page = path.with_suffix(".md").read_text()
        assert untimed(page) == untimed((place.folder / "predictions/whole" / f"{path.stem}.md").read_text())


@pytest.mark.smoke
def test_no_answered_question_is_asked_twice(undisturbed: list[Question], killed: Killed) -> None:
    assert len(set(undisturbed)) == len(undisturbed)
    for before, known in killed.answered:
        assert not known & set(killed.arrived[before:])
    assert sorted(asked_in(killed.run, "reply")) == sorted(undisturbed)
    assert Counter(killed.arrived) <= Counter(asked_in(killed.run, "request")), "what is asked was written down before"


@pytest.mark.smoke
def test_every_repeated_question_is_explained_by_a_kill(killed: Killed) -> None:
    repeated = killed.repeated()
    for each in repeated:
        print(each.question, killed.explained(each))
    assert [each for each in repeated if not killed.explained(each)] == []
    assert len(repeated) <= KILLS * JOBS


@pytest.mark.smoke
def test_what_was_answered_is_paid_for_once(place: Place, killed: Killed) -> None:
    spent = {name: replace(Run(place.folder, name).spent(), seconds=0.0) for name in ("whole", "killed")}
    assert spent["killed"] == spent["whole"]


@pytest.mark.smoke
def test_nothing_of_the_killed_is_left(place: Place, killed: Killed) -> None:
    assert killed.owners, "whoever is killed leaves a name"
    assert [left_by(owner) for owner in killed.owners if left_by(owner)] == []
    assert list((place.cache / locks.ALIVE).iterdir()) == []
    assert list(killed.run.folder.rglob(".*")) == []


def test_a_damaged_prediction_is_made_from_its_journal_with_nobody_to_ask(place: Place, killed: Killed) -> None:
    before, path = predictions(place, "killed"), finished(killed.run)[-1]
    path.write_bytes(path.read_bytes()[:-100])
    # The server is gone.
    place.run(killed.command)
    assert predictions(place, "killed") == before
    assert path.with_name(f"{path.name}.damaged").exists()


@pytest.mark.smoke
def test_kills_of_report_py_lose_no_verdict_and_run_none_twice(place: Place, killed: Killed, tmp_path: Path) -> None:
    place.run(place.report("whole"))
    other = Place(place.folder, own_cache(tmp_path / "cache"))
    whole, found = len(verdicts(place)), dict[Path, tuple[int, int]]()
    print(f"RETRIAL_SEED={SEED}: {whole} verdicts")
    # The last ones are left for the end: it must not be over before it is killed.
    for progress, delay in moments(whole * 4 // 5):
        other.kill(other.report("killed"), partial(judged_so_far, other, progress), delay)
        kept = verdicts(other)
        assert kept.items() >= found.items(), "a verdict that is there is neither lost nor made again"
        found = kept
        print(f"  killed with {len(found)} verdicts")
    other.run(other.report("killed"))
    assert verdicts(other).items() >= found.items()
    assert len(verdicts(other)) == whole
    assert results(place, "killed") == results(place, "whole")
    bundles = [(place.folder / "predictions" / run / "all_preds.jsonl").read_bytes() for run in ("whole", "killed")]
    assert bundles[0] == bundles[1]
    assert len(bundles[0].splitlines()) == TASKS


def verdicts(place: Place) -> dict[Path, tuple[int, int]]:
    """What is kept of runs in sandboxes: another file is another run."""
    paths = (place.cache / "verdicts").rglob("*.json")
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths if not path.name.startswith(".")}


def judged_so_far(place: Place, number: int) -> bool:
    return len(verdicts(place)) >= number


def results(place: Place, run: str) -> Any:
    return unmeasured(json.loads((place.folder / "predictions" / run / "results.json").read_text()))


def untimed(page: str) -> str:
    # Rules are as long as the line has room beside the time.
    return re.sub(r"=+|\d+\.\d+ ?s\b", "", page)
