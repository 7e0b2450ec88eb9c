"""What is compiled once: it is made once, handed to jobs, and its failure stops nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import Exercism
from retrial.checks import Check, Prebuild
from retrial.grading import prebuild as prebuilds
from retrial.grading.run_check import run_check
from retrial.protocols import Sandbox
from retrial.system.secrets import MASKER
from retrial.types import Execution, Job, Limits, Outcome
from tests.parts import PYTHON
from tests.support.exercises import write_exercise

# Of two builds no two results are the same.
MADE = Prebuild(script='cat seed /proc/sys/kernel/random/uuid >"$RETRIAL_REPORTS/made"', files={"seed": b"seed "})
BROKEN = Prebuild(script='echo half >"$RETRIAL_REPORTS/made"; exit 1', files={})
ENDLESS = Prebuild(script="sleep 1000", files={}, limits=Limits(seconds=1))


class Counting:
    """A sandbox that counts the jobs it runs."""

    def __init__(self, inner: Sandbox) -> None:
        self.name = inner.name
        self.unavailable, self.missing, self.state = inner.unavailable, inner.missing, inner.state
        self.prepare, self.machine = inner.prepare, inner.machine
        self.digest, self.describe = inner.digest, inner.describe
        self.inner = inner
        self.jobs = 0

    def run(self, job: Job) -> Execution:
        self.jobs += 1
        return self.inner.run(job)


@pytest.fixture
def counting(home: Path, bwrap: Sandbox) -> Counting:
    return Counting(bwrap)


def files(prebuild: Prebuild, sandbox: Sandbox, *, fresh: bool = False) -> dict[str, bytes]:
    return dict(prebuilds.files(prebuild, PYTHON, sandbox, fresh=fresh))


@pytest.mark.real
def test_it_is_made_once_from_its_files(counting: Counting) -> None:
    first = files(MADE, counting)
    assert [*first] == [".retrial/made"]
    assert first[".retrial/made"].startswith(b"seed ")
    assert files(MADE, counting) == first
    assert counting.jobs == 1


@pytest.mark.real
def test_another_script_or_another_file_is_another_one(counting: Counting) -> None:
    first = files(MADE, counting)
    assert files(replace(MADE, files={"seed": b"other "}), counting) != first
    assert files(replace(MADE, script=MADE.script + "\n"), counting) != first
    assert counting.jobs == 3


@pytest.mark.real
@pytest.mark.parametrize("failing", [BROKEN, ENDLESS], ids=["broken", "endless"])
def test_one_that_fails_leaves_nothing_and_is_tried_again_by_the_next_program(
    counting: Counting, failing: Prebuild
) -> None:
    assert files(failing, counting) == files(failing, counting) == {}
    assert counting.jobs == 1
    prebuilds._failed_here.clear()
    assert files(failing, counting) == {}
    assert counting.jobs == 2


@pytest.mark.real
def test_different_ones_are_made_side_by_side(home: Path, bwrap: Sandbox) -> None:
    both = threading.Barrier(2, timeout=60)

    class Meeting(Counting):
        def run(self, job: Job) -> Execution:
            both.wait()
            return super().run(job)

    meeting, other = Meeting(bwrap), replace(MADE, files={"seed": b"beside "})
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda made: files(made, meeting), (MADE, other)))


@pytest.mark.real
def test_a_check_finds_it_in_its_folder_whatever_the_patch(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    benchmark = Exercism(write_exercise(tmp_path / "bench"), "bench")
    (task,) = benchmark.tasks()
    check = Check(script="cat .retrial/made", files={}, result_parser="grading.exit_status", prebuild=MADE)
    seen = run_check(task, "", check, bwrap, untouched=True)
    assert seen.outcome is Outcome.RESOLVED
    assert seen.stdout.startswith("seed ")
    assert check.digest == replace(check, prebuild=None).digest
    assert run_check(task, "", replace(check, prebuild=BROKEN), bwrap, untouched=True).exit_code == 1


@pytest.mark.real
def test_it_is_used_as_it_was_made_even_if_it_holds_what_looks_like_a_key(counting: Counting) -> None:
    MASKER.guess("GCC: (Debian 12.2.0-14+deb12u1)")
    made = Prebuild(script='cat seed >"$RETRIAL_REPORTS/made"', files={"seed": b"GCC: (Debian 12.2.0-14+deb12u1)\0"})
    assert files(made, counting) == files(made, counting) == {".retrial/made": made.files["seed"]}
    assert counting.jobs == 1


@pytest.mark.real
def test_one_that_is_damaged_is_named_and_made_again(
    home: Path, counting: Counting, capsys: pytest.CaptureFixture[str]
) -> None:
    first = files(MADE, counting)
    stored = [path for path in (home.parent / "cache" / "prebuilt").rglob("*") if path.is_file()]
    for path in stored:
        path.write_bytes(path.read_bytes()[:-9])
    second = files(MADE, counting)
    assert second.keys() == first.keys() and second != first
    assert counting.jobs == 2
    assert str(stored[-1]) in capsys.readouterr().err
    assert files(MADE, counting) == second


@pytest.mark.real
def test_fresh_makes_it_again_once(counting: Counting) -> None:
    made = replace(MADE, files={"seed": b"fresh "})
    first = files(made, counting)
    prebuilds._made_here.clear()
    second = files(made, counting, fresh=True)
    assert first != second
    assert files(made, counting, fresh=True) == files(made, counting) == second
    assert counting.jobs == 2
