"""What journals say was spent, kept beside them: the same as they say, and never older than they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.chat import Reply, Usage
from retrial.errors import UsageError
from retrial.predict.metering.driver_service import budget_for_runs, committed_in
from retrial.store import spending
from retrial.store.runs import Run
from tests.support.journals import append


def asks(run: Run, instance_id: str, cost: float, reserved: float = 1.0) -> None:
    """One question, answered."""
    journal = run.journal(instance_id)
    append(journal, "request", attempt=1, call=1, reserved=reserved)
    append(journal, "reply", attempt=1, call=1, reply=Reply(text="", usage=Usage(calls=1, cost=cost, seconds=2.0)))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Run(tmp_path, "R")
    asks(found, "one", 0.25)
    asks(found, "two", 0.5)
    return found


def kept(run: Run) -> Path:
    return run.folder / "journal" / spending.NAME


def test_what_is_kept_is_what_the_journals_say(run: Run) -> None:
    before = run.sums()
    run.keep_sums()
    assert run.sums() == before
    assert run.spent() == Usage(calls=2, cost=0.75, seconds=4.0)
    assert committed_in(run) == 0.75


def test_a_journal_of_the_size_it_had_is_not_read_again(run: Run) -> None:
    run.keep_sums()
    path = run.folder / "journal" / "one.jsonl"
    path.write_bytes(b" " * path.stat().st_size)
    assert run.spent().cost == 0.75


def test_a_journal_that_has_grown_is_read_again_and_a_new_one_too(run: Run) -> None:
    run.keep_sums()
    asks(run, "one", 0.125)
    asks(run, "three", 1.0)
    assert run.spent().cost == 1.875
    append(run.journal("three"), "request", attempt=1, call=2, reserved=8.0)
    assert committed_in(run) == 9.875


def test_an_unknown_cost_stays_unknown(run: Run) -> None:
    append(run.journal("one"), "spent", usage=Usage(calls=1, cost=None))
    run.keep_sums()
    assert run.spent().cost is None
    assert committed_in(run) == float("inf")
    assert b"Infinity" not in kept(run).read_bytes()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"one.jsonl": 1}', b'{"one.jsonl": ["a", 1, {}]}'])
def test_a_damaged_file_is_passed_over(run: Run, content: bytes) -> None:
    kept(run).write_bytes(content)
    assert run.spent().cost == 0.75


def test_a_run_without_journals_has_spent_nothing(tmp_path: Path) -> None:
    assert Run(tmp_path, "none").spent() == Usage()


def test_what_a_journal_cost_that_is_gone_or_has_shrunk_stays_counted(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.keep_sums()
    (run.folder / "journal" / "one.jsonl").write_bytes(b"")
    (run.folder / "journal" / "two.jsonl").unlink()
    assert committed_in(run) == 0.75
    assert "one.jsonl is missing or smaller than it was" in capsys.readouterr().err


def damage(run: Run, *numbers: int) -> None:
    """Break these lines of journal `one`, and have it mended."""
    path = run.folder / "journal" / "one.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number] = lines[number].replace(b', "crc"', b', crc"')
    path.write_bytes(b"".join(lines))
    run.journal("one").mended()


@pytest.mark.parametrize("numbers", [(0,), (1,), (0, 1)])
def test_what_lines_cost_that_were_damaged_stays_counted_and_so_does_what_follows(
    run: Run, numbers: tuple[int, ...]
) -> None:
    run.keep_sums()
    damage(run, *numbers)
    # What was put by counts too: whether it was used cannot be told any more.
    counted = 0.25 + 1.0 + 0.5
    assert committed_in(run) == counted
    run.keep_sums()
    for _ in range(3):
        asks(run, "one", 0.25)
        counted += 0.25
        assert committed_in(run) == counted
        run.keep_sums()


def test_a_damaged_line_that_may_have_been_anything_makes_the_cost_unknown(run: Run) -> None:
    path = run.folder / "journal" / "one.jsonl"
    first = path.read_bytes().index(b"\n")
    path.write_bytes(bytes(first) + path.read_bytes()[first:])
    run.journal("one").mended()
    assert run.unsettled() is None


def test_a_journal_that_cannot_be_read_is_named_and_its_cost_not_forgotten(run: Run) -> None:
    (run.folder / "journal" / "three.jsonl").symlink_to(run.folder / "nowhere")
    with pytest.raises(UsageError, match=r"three\.jsonl is no file"):
        committed_in(run)


def test_a_line_that_nobody_can_read_is_a_sentence(run: Run) -> None:
    append(run.journal("three"), "reply", attempt=1, call=1)
    with pytest.raises(UsageError, match=r"three\.jsonl, line 1, is of another version"):
        committed_in(run)


def test_what_did_not_arrive_is_told_from_what_was_billed(run: Run) -> None:
    append(run.journal("three"), "request", attempt=1, call=1, reserved=0.25)
    assert (run.spent().cost, run.unsettled()) == (0.75, 0.25)
    assert budget_for_runs(None, [run]).shown() == "1.0000 USD (0.2500 of it perhaps not billed)"
    append(run.journal("three"), "attempt_started", attempt=1, model="x", spends=True)
    assert run.unsettled() is None
