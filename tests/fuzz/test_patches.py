"""Changed patches: refused with a sentence or applied as a whole, and never outside the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.errors import PatchError
from retrial.grading import run_check
from retrial.patches.apply import apply, diff, patched
from retrial.patches.parser import parse
from retrial.system.files import remove_all
from retrial.types import Outcome, Task, Verdict
from tests.fuzz.mutation import NAMES, changed_lines, fuzz
from tests.support.odd_patches import BASE, DONE, PLAIN, added, exercise, sample
from tests.support.repository_task import repository

TREE = {**BASE, "src/deep.py": b"x = 1\n\n\ny = 2\n", "sub/data.bin": bytes(range(256)), "open.txt": b"no end"}
EDITED = {
    **TREE, "add.py": DONE, "src/deep.py": b"x = 1\n\ny = 3\nz = 4\n", "sub/data.bin": bytes(range(1, 256)),
    "helper.py": b"def help():\n    pass\n", "open.txt": b"no end either",
}  # fmt: skip
del EDITED["notes.txt"]

WORDS = (
    "", "+x", "-x", " x", "@@ -1 +1 @@", "@@ -0,0 +1 @@", "@@ -1,2 +1,2 @@", "@@ -1,99999999 +1 @@", "--- /dev/null",
    "+++ /dev/null", "--- a/add.py", "+++ b/add.py", "diff --git a/add.py b/add.py", "new file mode 120000",
    "new file mode 100644", "deleted file mode 100644", "old mode 100644", "new mode 160000", "similarity index 100%",
    "rename from add.py", "rename to sum.py", "copy from notes.txt", "copy to helper.py", "GIT binary patch",
    "literal 5",
    "delta 9", "literal 99999999999", "zcmV~$0|0x8", "Binary files a/add.py and b/add.py differ", "-- ", "```", "\x00",
    "index 0000000..1111111 120000", "\\ No newline at end of file",
    *(f"{word}{name}" for name in NAMES for word in ("--- a/", "+++ b/", "rename to ", "diff --git a/x b/")),
)  # fmt: skip

CHANGES = changed_lines(WORDS)


def sources() -> list[str]:
    """Real patches: of our own tasks, of a tree with a bit of everything, and odd ones."""
    demo = Exercism(DEMO, "demo", 2)
    gold = [demo.answer(task.instance_id).patch for task in demo.tasks()]
    names = ("ok_rename", "ok_mode", "ok_unicode_path", "symlink_out", "symlink_write", "submodule", "traversal")
    moved = "diff --git a/add.py b/sum.py\nsimilarity index 100%\ncopy from add.py\ncopy to sum.py\n"
    odd = [PLAIN, moved, *map(sample, names), *(added(name) for name in ("a b.py", 'q".py', "é.py", "src/more.py"))]
    return [*gold, diff(TREE, EDITED), diff(EDITED, TREE), diff(TREE, {}), *odd]


SOURCES = sources()
patches = st.builds(
    lambda first, second, change: change(first + second),
    st.sampled_from(SOURCES),
    st.sampled_from(["", *SOURCES]),
    CHANGES,
)


def free(path: str) -> bool:
    """What an exercise lets a patch change, written once more."""
    folder, _, name = path.rpartition("/")
    beside = folder in ("", "src") and name.endswith(".py") and not name.endswith("_test.py") and name != "conftest.py"
    return path in ("add.py", "src/deep.py") or (path not in TREE and beside)


def sound(task: Task, patch: str) -> None:
    found = run_check.select(task, patch)
    if isinstance(found, Verdict):
        assert found.outcome is Outcome.PATCH_DID_NOT_APPLY
        assert found.reason.endswith(".") and "\n" not in found.reason
        return
    kept = parse(found.patch)
    assert all(change.regular for change in kept)
    assert task.whole_repository or all(free(change.new) for change in kept if change.new)
    # Read once more, it is the same: nothing in it can be taken for something else.
    assert "".join(change.text for change in kept) == found.patch


@fuzz(2000)
@given(patch=patches)
def test_a_patch_is_refused_with_a_sentence_or_only_what_counts_is_left_of_it(patch: str) -> None:
    sound(exercise(TREE), patch)


@fuzz(200)
@given(patch=patches)
def test_a_patch_of_a_repository_is_refused_as_a_whole_or_read_as_git_does(patch: str) -> None:
    sound(repository(TREE, "Add."), patch)


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside: Path = tmp_path_factory.mktemp("outside")
    (outside / "passwd").write_bytes(b"secret\n")
    (outside / "other").mkdir()
    (outside / "other" / "x.py").write_bytes(b"theirs\n")
    return outside


def seen(folder: Path) -> dict[str, bytes | str]:
    """Everything below, links as links."""
    return dict(_seen(folder))


def _seen(folder: Path) -> Iterator[tuple[str, bytes | str]]:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root, name)
            if path.is_symlink():
                yield str(path), os.readlink(path)
            elif path.is_file():
                yield str(path), path.read_bytes()


def laid(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "link").symlink_to("../other")
    (folder / "link.py").symlink_to("../passwd")


def applied(inside: Path, task: Task, patch: str) -> None:
    """One patch, the way of a check and into a folder: both or neither, and the same."""
    found = run_check.select(task, patch)
    if isinstance(found, Verdict):
        return
    before = seen(inside)
    try:
        wanted = patched(TREE, found.patch).files
    except PatchError:
        wanted = None
    try:
        apply(inside, found.patch)
    except PatchError:
        assert seen(inside) == before
        return
    after = {path: content for path, content in seen(inside).items() if isinstance(content, bytes)}
    assert wanted is not None and after == {str(inside / path): content for path, content in wanted.items()}
    if not task.whole_repository:
        assert all(free(path) for path in TREE.keys() | wanted.keys() if wanted.get(path) != TREE.get(path))


@fuzz(300)
@given(patch=patches, whole=st.booleans())
@example(patch=added("link/x.py"), whole=True)
@example(patch=added("link.py"), whole=True)
def test_a_patch_is_applied_whole_or_not_at_all_and_nothing_outside_changes(
    around: Path, patch: str, whole: bool
) -> None:
    inside = around / "inside"
    laid(inside, TREE)
    outside = {path: content for path, content in seen(around).items() if not path.startswith(f"{inside}/")}
    try:
        applied(inside, repository(TREE, "Add.") if whole else exercise(TREE), patch)
        now = {path: content for path, content in seen(around).items() if not path.startswith(f"{inside}/")}
        assert now == outside
    finally:
        remove_all(inside)


contents = st.lists(
    st.sampled_from(
        (b"a", b"", b"  b", b"--- a/x", b"+++ b/x", b"@@ -1 +1 @@", b"caf\xe9", b"c\r", b"\0", b"-- ", b"\\ x")
    )
).map(b"\n".join)
trees = st.dictionaries(
    st.sampled_from(["a.py", "b c.py", "é/ü.txt", 'q"\\.c', "a/b/c.rs", "-- x", "\udce9.bin", "x ", "dev/null"]),
    contents,
    max_size=4,
)


@fuzz(50)
@given(old=trees, new=trees)
def test_any_tree_becomes_any_other(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
    assert patched(old, diff(old, new)).files == new
