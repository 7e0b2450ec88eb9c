"""Which files of a repository a model is offered, and which it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.agents.edit import file_picker
from retrial.patches import git
from tests.support.repository_task import Scripted, attempt, repository

CORE = b"def add(a, b):\n    return a - b\n"
ROUNDING = b"def rounded(x):\n    return int(x)\n"
FILES = {
    "calc/core.py": CORE,
    "calc/rounding.py": ROUNDING,
    "calc/large.py": b"# line\n" * (file_picker.SHOWN // 7 + 1),
    "calc/logo.png": b"\x89PNG\0\0",
    "calc/link.py": b"core.py",
    "calc/\udcff.py": b"1",
    "tests/test_core.py": b"1",
    "README.md": b"# calc\n",
}
TASK = repository(FILES, "add subtracts", links={"calc/link.py": git.SYMLINK})


@pytest.fixture(autouse=True)
def own_cache(home: Path) -> None:
    """Nothing of the user's is read or written."""


def whole(path: str, content: bytes) -> str:
    return f"{path}\n```\n{content.decode()}```\n"


def test_only_text_that_may_be_changed_can_be_named() -> None:
    assert set(file_picker.editable(TASK)) == {"calc/core.py", "calc/rounding.py", "calc/large.py", "README.md"}


def test_without_a_map_sources_are_listed_and_those_that_the_problem_speaks_of_come_first() -> None:
    sources = ["calc/core.py", "calc/rounding.py", "README.md"]
    assert file_picker.candidates(repository(FILES, "rounding is off"), sources)[0] == "calc/rounding.py"
    assert file_picker.candidates(repository(FILES, "see calc.core for why"), sources)[0] == "calc/core.py"
    assert "README.md" not in file_picker.candidates(repository(FILES, "README"), sources)


@pytest.mark.parametrize("map_tokens", [0, 2048])
def test_a_model_is_shown_no_file_that_it_could_not_be_given(map_tokens: int, tmp_path: Path) -> None:
    said = file_picker.asked(TASK, file_picker.editable(TASK), map_tokens, tmp_path)
    assert "calc/core.py" in said
    assert not any(path in said for path in ("calc/large.py", "calc/logo.png", "calc/link.py", "tests/test_core.py"))


def test_a_reply_names_files_in_any_dress() -> None:
    sizes = {"calc/core.py": 10, "calc/rounding.py": 10}
    reply = "I would change `./calc/rounding.py`, then\n- **calc/core.py**.\nNot tests/test_core.py."
    assert file_picker.named(reply, sizes).taken == ("calc/rounding.py", "calc/core.py")
    assert file_picker.named("None of them.", sizes) == file_picker.Named()
    assert file_picker.named("Both:\n\n- `app/[id] (2).py`", {"app/[id] (2).py": 1}).taken == ("app/[id] (2).py",)


def test_the_end_of_a_path_names_a_file_if_no_other_ends_so() -> None:
    sizes = {"a/calc/core.py": 1, "a/calc/rounding.py": 1, "b/rounding.py": 1}
    assert file_picker.named("calc/core.py and rounding.py", sizes).taken == ("a/calc/core.py",)
    assert file_picker.named("core.py, b/rounding.py", sizes).taken == ("b/rounding.py",)


def test_no_more_is_taken_than_can_be_shown() -> None:
    sizes = {"a.py": file_picker.SHOWN - 5, "b.py": 10, "c.py": 5}
    assert file_picker.named("a.py b.py c.py", sizes) == file_picker.Named(("a.py", "c.py"), ("b.py",))
    assert len(file_picker.named(" ".join(f"f{n}.py" for n in range(9)), {f"f{n}.py": 1 for n in range(9)}).taken) == 5


def test_the_model_names_a_file_is_shown_it_and_edits_it(tmp_path: Path) -> None:
    model = Scripted("<think>calc/rounding.py?</think>calc/core.py", whole("calc/core.py", b"fixed = 1\n"))
    found = attempt(TASK, model, tmp_path)
    assert "return a - b" in model.told[1]
    assert "return int(x)" not in model.told[1]
    assert "+fixed = 1" in found.patch
    assert found.unverified


def test_a_model_that_names_nothing_is_asked_again_and_one_that_never_does_has_no_edit(tmp_path: Path) -> None:
    model = Scripted(*[f"It is somewhere, says guess {number}." for number in range(4)])
    found = attempt(TASK, model, tmp_path)
    assert model.told[1:] == [file_picker.NONE_NAMED] * 3
    assert found.effort is not None
    assert (found.patch, found.effort.notes) == ("", ("the model named no file to edit",))


def test_a_file_that_is_too_large_is_not_shown_and_the_model_is_told(tmp_path: Path) -> None:
    model = Scripted("calc/large.py", "calc/large.py, calc/core.py", whole("calc/core.py", b"fixed = 1\n"))
    attempt(TASK, model, tmp_path)
    assert "no room to show you calc/large.py" in model.told[1]
    assert "no room to show you calc/large.py" in model.told[2]
    assert "return a - b" in model.told[2]


def test_a_whole_file_that_was_not_shown_is_not_overwritten_but_shown(tmp_path: Path) -> None:
    unseen = whole("calc/rounding.py", b"fixed = 2\n")
    model = Scripted("calc/core.py", whole("calc/core.py", b"fixed = 1\n") + unseen, unseen)
    found = attempt(TASK, model, tmp_path)
    assert "You had not seen these files before" in model.told[2]
    assert "return int(x)" in model.told[2]
    assert found.effort is not None
    assert (found.effort.reflections, found.effort.malformed) == (1, 0)
    # Nothing of the first reply was applied.
    assert "calc/core.py" not in found.patch
    assert "+fixed = 2" in found.patch


def test_a_search_in_a_file_that_was_not_shown_has_it_shown(tmp_path: Path) -> None:
    block = "calc/rounding.py\n```\n<<<<<<< SEARCH\n    return {}\n=======\n    return round(x)\n>>>>>>> REPLACE\n```\n"
    model = Scripted("calc/core.py", block.format("floor(x)"), block.format("int(x)"))
    found = attempt(TASK, model, tmp_path, edit_format="diff")
    assert "return int(x)" in model.told[2]
    assert "+    return round(x)" in found.patch


def test_there_is_room_for_no_more_than_before_when_files_are_shown_later(tmp_path: Path) -> None:
    model = Scripted("calc/core.py", whole("calc/large.py", b"1\n"), whole("calc/core.py", b"fixed = 1\n"))
    found = attempt(TASK, model, tmp_path)
    assert "no room to show you calc/large.py" in model.told[2]
    assert found.effort is not None
    assert found.effort.faults == ("not_allowed",)


def test_a_file_that_the_model_made_can_be_mended(tmp_path: Path) -> None:
    new = "calc/new.py\n```\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n```\n"
    model = Scripted("calc/core.py", new.format("", "x = (\n"), new.format("x = (\n", "x = 1\n"))
    found = attempt(TASK, model, tmp_path, edit_format="diff")
    assert "Fix these errors" in model.told[2]
    assert "+x = 1" in found.patch
