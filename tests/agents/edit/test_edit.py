"""What the built-in agent does with edits: no file is written over unseen, and what is lazy counts in calls too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrial.attempts import AgentResult, Attempt
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Fault, Reply, Request, ToolCall
from retrial.patches import git
from retrial.types import Task
from tests.support.exercises import RIGHT, reply, write_exercise
from tests.support.repository_task import Scripted, attempt, repository

CORE = b"def add(a, b):\n    return a - b\n"
REPOSITORY = repository(
    {"calc/core.py": CORE, "calc/logo.png": b"\x89PNG\0\0", "calc/link.py": b"core.py"},
    "add subtracts",
    links={"calc/link.py": git.SYMLINK},
)
MENDED = f"calc/core.py\n```\n{RIGHT}```\n"
ADD_LOGO = "*** Begin Patch\n*** Add File: calc/logo.png\n+x\n*** End Patch\n"
MEND_CORE = """\
*** Begin Patch
*** Update File: calc/core.py
@@
-    return a - b
+    return a + b
*** End Patch
"""


@pytest.fixture(autouse=True)
def own_cache(home: Path) -> None:
    """Nothing of the user's is read or written."""


class Calling(Scripted):
    """Says nothing, and calls a function."""

    def complete(self, request: Request) -> Reply:
        arguments = super().complete(request).text
        return Reply(text="", calls=(ToolCall(name="write_files", arguments=arguments, id="call-1"),))


def exercise(folder: Path, **files: str) -> Task:
    (task,) = Exercism(write_exercise(folder, editor=files), "here", 1).tasks()
    return task


def effort(made: Attempt) -> AgentResult:
    assert made.effort is not None
    return made.effort


def faults(made: Attempt) -> tuple[str, ...]:
    return effort(made).faults


@pytest.mark.parametrize("path", ["calc/logo.png", "calc/link.py"])
def test_what_a_repository_has_and_nobody_can_be_shown_is_not_written_over(path: str, tmp_path: Path) -> None:
    model = Scripted("calc/core.py", f"{MENDED}\n{path}\n```\nx = 1\n```\n", MENDED)
    made = attempt(REPOSITORY, model, tmp_path)
    assert (faults(made), path in made.patch) == ((Fault.NOT_ALLOWED,), False)
    assert path in model.told[-1]


def test_a_patch_that_adds_a_file_that_is_there_unseen_adds_nothing(tmp_path: Path) -> None:
    model = Scripted("calc/core.py", ADD_LOGO, MEND_CORE)
    made = attempt(REPOSITORY, model, tmp_path, edit_format="patch")
    assert (faults(made), "logo" in made.patch) == ((Fault.NOT_ALLOWED,), False)


def test_a_new_file_of_a_repository_is_written(tmp_path: Path) -> None:
    made = attempt(REPOSITORY, Scripted("calc/core.py", f"{MENDED}\ncalc/new.py\n```\nx = 1\n```\n"), tmp_path)
    assert "b/calc/new.py" in made.patch


def test_what_is_shown_to_be_used_is_not_written_over(tmp_path: Path) -> None:
    task = exercise(tmp_path / "bench", **{"given.py": "GIVEN = 1\n"})
    assert task.read_only == ("given.py",)
    made = attempt(task, Scripted(reply(RIGHT) + reply("GIVEN = 2\n", "given.py"), reply(RIGHT)), tmp_path)
    assert (faults(made), "GIVEN" in made.patch) == ((Fault.NOT_ALLOWED,), False)


def test_a_manifest_of_which_a_part_would_count_is_not_written_over_either(tmp_path: Path) -> None:
    folder = tmp_path / "rust" / "exercises" / "practice" / "sum-up"
    names = {"solution": ["src/lib.rs", "Cargo.toml"], "test": ["tests/sum-up.rs"], "example": [".meta/example.rs"]}
    files = {
        "src/lib.rs": "// here\n",
        "Cargo.toml": '[package]\nname = "sum-up"\n\n[dependencies]\ntime = "0.3"\n',
        "tests/sum-up.rs": "#[test]\nfn t() {}\n",
        ".meta/example.rs": "// done\n",
        ".meta/config.json": json.dumps({"files": names}),
        ".docs/instructions.md": "Add.\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    (task,) = Exercism(tmp_path, "here", 1).tasks()
    done = reply("// done\n", "src/lib.rs")
    made = attempt(task, Scripted(done + reply('[package]\nname = "x"\n', "Cargo.toml"), done), tmp_path)
    assert (faults(made), "Cargo" in made.patch, "+// done" in made.patch) == ((Fault.NOT_ALLOWED,), False, True)


def test_lazy_comments_are_counted_in_calls_too(tmp_path: Path) -> None:
    lazy = f"# ... as before\n{RIGHT}    # ... and so on\n"
    written = json.dumps({"files": [{"path": "sum_up.py", "content": lazy}]})
    made = attempt(exercise(tmp_path / "bench"), Calling(written), tmp_path, edit_format="whole-func")
    assert (effort(made).lazy_comments, faults(made)) == (2, ())


def test_lazy_thoughts_are_no_lazy_comments(tmp_path: Path) -> None:
    made = attempt(exercise(tmp_path / "bench"), Scripted(f"<think>\n# ... hm\n</think>\n{reply(RIGHT)}"), tmp_path)
    assert effort(made).lazy_comments == 0


NONSENSE = "I would rather not."


def test_a_model_that_repeats_a_malformed_reply_word_for_word_is_not_asked_again(tmp_path: Path) -> None:
    model = Scripted(NONSENSE, NONSENSE, reply(RIGHT))
    made = attempt(exercise(tmp_path / "bench"), model, tmp_path)
    assert (len(model.told), effort(made).malformed, made.patch) == (2, 2, "")
    assert effort(made).notes == ("the model repeated a malformed reply word for word and was not asked again",)


def test_a_model_that_repeats_a_malformed_call_is_not_asked_again(tmp_path: Path) -> None:
    model = Calling("{", "{", json.dumps({"files": [{"path": "sum_up.py", "content": RIGHT}]}))
    attempt(exercise(tmp_path / "bench"), model, tmp_path, edit_format="whole-func")
    assert len(model.told) == 2


def test_a_model_that_names_no_file_twice_in_the_same_words_is_not_asked_again(tmp_path: Path) -> None:
    model = Scripted(NONSENSE, NONSENSE, "calc/core.py", MENDED)
    attempt(REPOSITORY, model, tmp_path)
    assert len(model.told) == 2


def test_a_model_that_is_malformed_in_other_words_is_asked_again(tmp_path: Path) -> None:
    model = Scripted(NONSENSE, f"{NONSENSE} Really.", reply(RIGHT))
    assert "return a + b" in attempt(exercise(tmp_path / "bench"), model, tmp_path).patch


def test_a_reply_of_a_million_blank_lines_is_read_at_once(tmp_path: Path) -> None:
    """A pattern that crosses lines would take days."""
    model = Scripted("\n" * 1_000_000, reply(RIGHT))
    assert "return a + b" in attempt(exercise(tmp_path / "bench"), model, tmp_path).patch
