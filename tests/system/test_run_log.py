"""The log of a run: everything in lines of JSON, nothing on the screen, and never the end of a run."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from retrial.errors import SandboxError
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.system.console import Progress, say
from retrial.system.secrets import MASKER

LOG = logging.getLogger("retrial.somewhere")


def lines(run: Run, name: str = run_log.NAME) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.logs / name).read_text().splitlines()]


def messages(run: Run, **fields: object) -> list[str]:
    return [line["message"] for line in lines(run) if all(line.get(key) == value for key, value in fields.items())]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, "R")


def test_every_go_begins_with_who_and_what_and_is_added(run: Run) -> None:
    for command in ("python harness.py", "python report.py"):
        with run_log.RunLog(run.logs, run.name, command):
            LOG.info("at work")
    found = lines(run)
    assert [line["message"] for line in found] == ["started", "at work", "ended"] * 2
    assert [line["command"] for line in found if "command" in line] == ["python harness.py", "python report.py"]
    assert {"time", "level", "where", "run", "pid", "host", "versions"} <= set(found[0])


def test_a_line_says_when_how_grave_where_and_what(run: Run) -> None:
    with run_log.RunLog(run.logs, run.name, ""):
        LOG.warning("%s of %s", 3, 4, extra={"task": "one", "path": Path("a")})
    line = lines(run)[1]
    assert line["time"].endswith("+00:00") and len(line["time"]) == len("2026-01-01T00:00:00.000+00:00")
    del line["time"]
    assert line == {
        "level": "warning",
        "where": "retrial.somewhere",
        "message": "3 of 4",
        "task": "one",
        "path": "a",
    }


def test_what_a_job_logs_says_which_task_it_is_about(run: Run) -> None:
    def job(name: str) -> None:
        with run_log.about(task=name):
            LOG.info("inside", extra={"attempt": 1})
        LOG.info("outside")

    with run_log.RunLog(run.logs, run.name, ""):
        threads = [threading.Thread(target=job, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {line["task"] for line in lines(run) if line["message"] == "inside"} == {"a", "b"}
    assert not any("task" in line for line in lines(run) if line["message"] == "outside")


def test_a_broken_job_leaves_its_traceback(run: Run) -> None:
    def give_way() -> None:
        raise SandboxError("the sandbox is gone")

    with run_log.RunLog(run.logs, run.name, ""):
        try:
            give_way()
        except SandboxError as error:
            run_log.broken("not measured", error, task="one")
    (line,) = (line for line in lines(run) if line["level"] == "error")
    assert "in give_way" in line["traceback"] and line["task"] == "one"
    assert line["message"] == "not measured: SandboxError: the sandbox is gone"


def test_how_a_go_ended_is_said_also_when_by_a_defect_of_ours(run: Run) -> None:
    for error in (KeyboardInterrupt(), SandboxError("no engine"), ZeroDivisionError("oh")):
        with pytest.raises(type(error)), run_log.RunLog(run.logs, run.name, ""):
            raise error
    assert messages(run, level="warning") == ["ended: interrupted", "ended: no engine"]
    (line,) = (line for line in lines(run) if line["level"] == "critical")
    assert "ZeroDivisionError: oh" in line["traceback"]


def test_what_people_are_told_is_there_too(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with run_log.RunLog(run.logs, run.name, ""):
        say("100 % done")
        say("note: look at this")
        with Progress("harness", 1) as progress:
            progress.step("one: plausible", "1 plausible")
    assert messages(run, level="warning") == ["note: look at this"]
    assert messages(run, where="retrial.system.console") == [
        "100 % done",
        "note: look at this",
        "harness 1/1: one: plausible [1 plausible]",
    ]
    assert len(capsys.readouterr().err.splitlines()) == 3, "logging itself prints nothing"


def test_details_are_there_only_for_who_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("", "debug"):
        monkeypatch.setenv(run_log.VARIABLE, word)
        with run_log.RunLog(run.logs, run.name, ""):
            LOG.debug("detail with %s", word)
    assert messages(run, level="debug") == ["detail with debug"]


def test_what_comes_before_the_run_is_known_waits_for_it(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    ours = logging.getLogger("retrial")
    before = ours.handlers, ours.level, ours.propagate
    try:
        run_log.begin()
        LOG.warning("an orphan")
        with run_log.RunLog(run.logs, run.name, ""):
            LOG.info("at work")
    finally:
        ours.handlers, _, ours.propagate = before
        ours.setLevel(before[1])
    assert messages(run) == ["started", "an orphan", "at work", "ended"]
    assert capsys.readouterr().err == ""


def test_a_full_log_makes_room_for_itself_and_keeps_one_older(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "LARGEST", 2000)
    with run_log.RunLog(run.logs, run.name, ""):
        for number in range(100):
            LOG.info("line %d", number)
    assert sorted(path.name for path in run.logs.iterdir()) == ["run.log", "run.log.1"]
    found = [line["message"] for name in ("run.log.1", "run.log") for line in lines(run, name)]
    assert found == [*(f"line {number}" for number in range(101 - len(found), 100)), "ended"]
    assert all(path.stat().st_size < 2300 for path in run.logs.iterdir())


def test_a_log_that_cannot_be_written_is_no_reason_to_stop(run: Run) -> None:
    run.logs.parent.mkdir(parents=True)
    run.logs.write_text("a file where the folder should be")
    with run_log.RunLog(run.logs, run.name, ""):
        LOG.info("at work")
    assert run.logs.read_text() == "a file where the folder should be"


def test_a_full_disk_is_no_reason_to_stop(run: Run) -> None:
    run.logs.mkdir(parents=True)
    (run.logs / run_log.NAME).symlink_to("/dev/full")
    with run_log.RunLog(run.logs, run.name, ""):
        LOG.info("at work")


def test_a_message_with_a_mistake_in_it_is_no_reason_to_stop(run: Run) -> None:
    with run_log.RunLog(run.logs, run.name, ""):
        LOG.info("%d tasks", "many")
        LOG.info("at work")
    assert messages(run) == ["started", "at work", "ended"]


def test_no_secret_is_in_it(run: Run) -> None:
    key = "sk-runlog-5f1c09d2a77b4e"
    MASKER.add(key)
    with run_log.RunLog(run.logs, run.name, f"python harness.py --agent-env A={key}"):
        LOG.error("said %s", key, exc_info=ValueError(key), extra={"body": {"key": key}})
    text = (run.logs / run_log.NAME).read_text()
    assert key not in text and text.count("***") == 4
