"""Which files of a repository a model is offered, and which it is given."""

from __future__ import annotations

from pathlib import Path

from retrial.agents import _finding
from retrial.benchmarks._exercises import FolderTree
from retrial.types import Environment, Task

FILES = {
    "calc/core.py": b"1" * 10,
    "calc/rounding.py": b"1" * 10,
    "calc/large.py": b"1" * (_finding.SHOWN + 1),
    "tests/test_core.py": b"1",
    "README.md": b"1",
}


def a_task(problem: str) -> Task:
    return Task(
        instance_id="a__b-1",
        benchmark="b",
        language="python",
        problem_statement=problem,
        tree=FolderTree(root=Path(), paths=()),
        environment=Environment(name="x", image="x:1", language="", tree="/testbed"),
        editable=(),
        anywhere=True,
        reserved=("tests/*",),
    )


def test_only_sources_that_may_be_changed_and_can_be_shown_are_listed() -> None:
    assert set(_finding.candidates(a_task("It fails."), FILES)) == {"calc/core.py", "calc/rounding.py"}


def test_files_that_the_problem_speaks_of_come_first() -> None:
    assert _finding.candidates(a_task("rounding is off"), FILES)[0] == "calc/rounding.py"
    assert _finding.candidates(a_task("see calc.core for why"), FILES)[0] == "calc/core.py"


def test_a_reply_names_files_in_any_dress() -> None:
    sizes = {"calc/core.py": 10, "calc/rounding.py": 10}
    reply = "I would change `./calc/rounding.py`, then\n- **calc/core.py**.\nNot tests/test_core.py."
    assert _finding.named(reply, sizes) == ("calc/rounding.py", "calc/core.py")
    assert _finding.named("None of them.", sizes) == ()


def test_no_more_is_taken_than_can_be_shown() -> None:
    sizes = {"a.py": _finding.SHOWN - 5, "b.py": 10, "c.py": 5}
    assert _finding.named("a.py b.py c.py", sizes) == ("a.py", "c.py")
    assert len(_finding.named(" ".join(f"f{n}.py" for n in range(9)), {f"f{n}.py": 1 for n in range(9)})) == 5
