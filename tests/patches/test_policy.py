"""What becomes of every odd kind of patch, one row each: the table of docs/trust.md, tried."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from retrial.errors import PatchError
from retrial.grading import run_check
from retrial.patches.apply import diff, patched
from retrial.types import Task, Verdict
from tests.support.odd_patches import BASE, DONE, PLAIN, STUB, added, binary, exercise, sample, section
from tests.support.repository_task import repository

APPLIED = "applied"
PARTLY = "applied without what may not be"
LEFT_OUT = "left out: nothing counts"
REFUSED = "refused whole"

CRLF = {**BASE, "add.py": STUB.replace(b"\n", b"\r\n")}
NOISE = {**BASE, "add.py": random.Random(0).randbytes(5000)}
OTHER_NOISE = {**NOISE, "add.py": NOISE["add.py"][:2500] + b"!" + NOISE["add.py"][2500:]}
GIT_FOLDERS = (
    ".git", ".GIT", ".Git", ".git ", ".git.", ".git. .", "git~1", "GIT~1", ".g\u200cit", "\ufeff.git",
    ".git::$INDEX_ALLOCATION", ".git\\hooks", "sub/.git",
)  # fmt: skip
MARK = "\\ No newline at end of file\n"
SWAPPED = PLAIN.replace("-    raise NotImplementedError\n+    return a + b", "-    return a + b\n+    return b + a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    patch: Callable[[], str] | str
    exercise: str
    repository: str = ""
    """Where it is another decision."""
    told: str = ""
    """In the sentence for people."""
    after: Mapping[str, bytes | None] = field(default_factory=dict)
    """Where it is applied: what is new in the tree; None is a file that is gone."""
    files: Mapping[str, bytes] = field(default_factory=lambda: BASE)


def moved(verb: str, new: str, *more: str, header: str = "") -> str:
    return section("add.py", header or new, "similarity index 100%", f"{verb} from add.py", f"{verb} to {new}", *more)


def many(count: int) -> dict[str, bytes]:
    return {f"more_{number}.py": b"x\n" for number in range(count)}


def large(megabytes: int) -> str:
    lines = megabytes * 10_000
    return f"--- /dev/null\n+++ b/big.py\n@@ -0,0 +1,{lines} @@\n" + f"+{'x' * 98}\n" * lines


DONE_IS_NEW = {"add.py": DONE}

ROWS = (
    # Binary files
    Row(what="binary file, whole (literal)", patch=lambda: diff(BASE, {**BASE, "b.py": b"\0\1"}),
        exercise=APPLIED, after={"b.py": b"\0\1"}),
    Row(what="binary file, what is different (delta)", patch=lambda: diff(NOISE, OTHER_NOISE),
        exercise=APPLIED, files=NOISE, after={"add.py": OTHER_NOISE["add.py"]}),
    Row(what="binary file that is only said to differ",
        patch=section("add.py", "add.py", "Binary files a/add.py and b/add.py differ"), exercise=REFUSED,
        told="does not apply"),
    Row(what="binary file of more than 10 MB", patch=binary("b.py", "literal", 10_000_001, b""),
        exercise=REFUSED, told="larger than 10 MB"),
    Row(what="binary files of more than 40 MB in all",
        patch=lambda: "".join(binary(f"b{n}.py", "literal", 9_000_000, bytes(9_000_000)) for n in range(5)),
        exercise=REFUSED, told="more than 40 MB"),
    Row(what="delta that makes gigabytes of a small file", patch=binary("b.py", "delta", 12, b"\x05"
        + b"\xff\xff\xff\xff\x7f" + b"\x90\x05"), exercise=REFUSED, told="larger than 10 MB"),
    Row(what="binary data with more in it than it says",
        patch=lambda: binary("b.py", "literal", 5, bytes(1_000_000)), exercise=REFUSED, told="corrupt binary"),
    Row(what="binary data that is cut off",
        patch=lambda: diff(BASE, {**BASE, "b.py": random.Random(1).randbytes(900)})[:-300], exercise=REFUSED,
        told="corrupt binary"),
    # Names that change, and modes
    Row(what="rename", patch=sample("ok_rename"), exercise=APPLIED, after={"add.py": None, "sum.py": STUB}),
    Row(what="rename to a name that differs in case only", patch=moved("rename", "ADD.py"), exercise=APPLIED,
        after={"add.py": None, "ADD.py": STUB}),
    Row(what="rename onto a file that is there", patch=moved("rename", "notes.txt"), exercise=LEFT_OUT,
        repository=REFUSED, told="already exists"),
    Row(what="copy", patch=moved("copy", "sum.py"), exercise=APPLIED, after={"sum.py": STUB}),
    Row(what="more than 100 copies", patch=lambda: "".join(moved("copy", f"c{n}.py") for n in range(101)),
        exercise=REFUSED, told="100 copies"),
    Row(what="copies of more than 50 MB", patch=lambda: "".join(moved("copy", f"c{n}.py") for n in range(60)),
        files={**BASE, "add.py": b"x" * 1_000_000}, exercise=REFUSED, told="50 MB"),
    Row(what="copy of what the same patch makes", patch=added("x.py") + moved("copy", "y.py").replace("add.py", "x.py"),
        exercise=PARTLY, repository=REFUSED, told="does not apply", after={"x.py": b"x\n"}),
    Row(what="executable bit", patch=sample("ok_mode"), exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="odd mode of a file (100600, 100777)", patch=added("x.py", "100600") + added("y.py", "100777"),
        exercise=APPLIED, after={"x.py": b"x\n", "y.py": b"x\n"}),
    Row(what="mode of a folder, a device, or none (040000, 020666, 000000, 777777)",
        patch="".join(added(f"x{mode}.py", mode) for mode in ("040000", "020666", "000000", "777777")),
        exercise=LEFT_OUT),
    Row(what="mode that is no mode", patch=added("x.py", "10"), exercise=REFUSED, told="mode"),
    Row(what="new symlink, to inside or outside or nowhere", patch=added("x.py", "120000", "add.py")
        + added("y.py", "120000", "/etc/passwd") + added("z.py", "120000", "none"), exercise=LEFT_OUT),
    Row(what="file that becomes a symlink", patch=section("add.py", "add.py", "old mode 100644",
        "new mode 120000"), exercise=LEFT_OUT),
    Row(what="symlink changed", patch=section("x.py", "x.py", "index 1111111..2222222 120000",
        "--- a/x.py", "+++ b/x.py", "@@ -1 +1 @@", "-a", "+b"), exercise=LEFT_OUT),
    Row(what="symlink deleted", patch=section("x.py", "x.py", "deleted file mode 120000",
        "--- a/x.py", "+++ /dev/null", "@@ -1 +0,0 @@", "-a"), exercise=LEFT_OUT),
    Row(what="symlink beside an honest change", patch=PLAIN + added("x.py", "120000", "/etc/passwd"),
        exercise=PARTLY, after=DONE_IS_NEW),
    Row(what="file through a symlink of the same patch", patch=sample("symlink_write"), exercise=LEFT_OUT,
        repository=PARTLY, after={"d/escape.txt": b"pwned\n"}),
    Row(what="submodule", patch=sample("submodule"), exercise=LEFT_OUT),
    # Where to
    Row(what="absolute path", patch=PLAIN + sample("absolute"), exercise=REFUSED, told="absolute"),
    Row(what="`..` in a path", patch=PLAIN + sample("traversal"), exercise=REFUSED, told="leaves the tree"),
    Row(what="`..` in the name a file is renamed to", patch=moved("rename", "../sum.py"), exercise=REFUSED,
        told="leaves the tree"),
    *(
        Row(what=f"`{name}` in a path".replace("\u200c", "(zero-width sign)"), patch=PLAIN
            + added(f"{name}/x.py"), exercise=REFUSED, told="git folder")
        for name in GIT_FOLDERS
    ),
    Row(what="`.gitattributes`, `.gitmodules`, `.gitignore`", patch=added(".gitattributes") + added(".gitmodules")
        + added(".gitignore"), exercise=LEFT_OUT, repository=APPLIED,
        after={".gitattributes": b"x\n", ".gitmodules": b"x\n", ".gitignore": b"x\n"}),
    Row(what="names with blanks and quotes", patch=added("a b.py") + added('q"uote.py')
        + added("back\\slash.py"), exercise=APPLIED,
        after={"a b.py": b"x\n", 'q"uote.py': b"x\n", "back\\slash.py": b"x\n"}),
    Row(what="blank at the end of a name", patch=added("x.py "), exercise=LEFT_OUT, repository=APPLIED,
        after={"x.py ": b"x\n"}),
    *(
        Row(what=f"{sign} in a path", patch=PLAIN + added(f"a{text}b.py"), exercise=REFUSED, told="control characters")
        for sign, text in (("tab", "\t"), ("line end", "\n"), ("control character", "\x1b"), ("NUL", "\0"))
    ),
    Row(what="Unicode in two forms (NFC, NFD): two files", patch=added("caf\u00e9.py")
        + added("cafe\u0301.py"), exercise=APPLIED, after={"caf\u00e9.py": b"x\n", "cafe\u0301.py": b"x\n"}),
    Row(what="name in octal quotes", patch=sample("ok_unicode_path"), exercise=PARTLY, repository=APPLIED,
        after=DONE_IS_NEW),
    Row(what="name that is not UTF-8", patch=added("\udce9.py"), exercise=APPLIED, after={"\udce9.py": b"x\n"}),
    Row(what="names that differ in case only: two files", patch=added("Add.py") + added("ADD.py"),
        exercise=APPLIED, after={"Add.py": b"x\n", "ADD.py": b"x\n"}),
    Row(what="more than 250 folders in folders", patch=lambda: added("d/" * 251 + "x.py"), exercise=REFUSED,
        told="250 folders"),
    Row(what="name of more than 255 bytes", patch=lambda: added("x" * 300 + ".py"), exercise=REFUSED, told="too long"),
    Row(what="file named as a folder is", patch=added("src"), files={**BASE, "src/deep.py": b"\n"},
        exercise=LEFT_OUT, repository=REFUSED, told="file and a folder"),
    Row(what="file that becomes a folder", patch=lambda: diff({"add.py": STUB}, {"add.py/x.py": b"1\n"}),
        exercise=PARTLY, repository=APPLIED, after={"add.py": None}),
    Row(what="folder that becomes a file", patch=lambda: diff({"src/deep.py": b"1\n"}, {"src": b"2\n"}),
        files={**BASE, "src/deep.py": b"1\n"}, exercise=PARTLY, repository=APPLIED, after={"src/deep.py": None}),
    # Ends of lines and files
    Row(what="patch with CRLF on every line, for a file with LF", patch=PLAIN.replace("\n", "\r\n"),
        exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="patch with LF for a file with CRLF", patch=PLAIN, files=CRLF, exercise=REFUSED, told="does not apply"),
    Row(what="patch whose changed lines have CRLF, as the file has",
        patch=lambda: diff(CRLF, {**CRLF, "add.py": DONE.replace(b"\n", b"\r\n")}), files=CRLF,
        exercise=APPLIED, after={"add.py": DONE.replace(b"\n", b"\r\n")}),
    Row(what="new line with CRLF in a file with LF: kept", patch=PLAIN.replace("a + b\n", "a + b\r\n"),
        exercise=APPLIED, after={"add.py": DONE.replace(b"b\n", b"b\r\n")}),
    Row(what="no line end at the end of the patch", patch=sample("ok_no_final_newline"), exercise=APPLIED,
        after=DONE_IS_NEW),
    Row(what="no line end at the end of the new file", patch=PLAIN + MARK, exercise=APPLIED,
        after={"add.py": DONE.rstrip(b"\n")}),
    Row(what="no line end at the end of the old file, which has one", patch=PLAIN.replace("Error\n", "Error\n"
        + MARK), exercise=REFUSED, told="does not apply"),
    Row(what="no line end on either side", patch=PLAIN.replace("Error\n", "Error\n" + MARK) + MARK,
        files={**BASE, "add.py": STUB.rstrip(b"\n")}, exercise=APPLIED, after={"add.py": DONE.rstrip(b"\n")}),
    Row(what="byte order mark before the patch", patch="\ufeff" + PLAIN, exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="NUL in a line", patch=PLAIN.replace("a + b", "'\0'"), exercise=APPLIED,
        after={"add.py": DONE.replace(b"a + b", b"'\0'")}),
    Row(what="bytes that are not UTF-8", patch=PLAIN.replace("a + b", "'\udce9'"), exercise=APPLIED,
        after={"add.py": DONE.replace(b"a + b", b"'\xe9'")}),
    Row(what="half a surrogate pair", patch=PLAIN.replace("a + b", "'\ud83d'"), exercise=REFUSED,
        told="half a character"),
    # How much
    Row(what="10 MB", patch=lambda: large(10), exercise=APPLIED),
    Row(what="more than 20 MB", patch=lambda: large(50), exercise=REFUSED, told="more than 20 MB"),
    Row(what="one line of 10 MB", patch=lambda: PLAIN.replace("a + b", "a" * 10_000_000), exercise=APPLIED),
    Row(what="10,000 files", patch=lambda: diff({}, many(10_000)), exercise=APPLIED),
    Row(what="more than 20,000 files", patch=lambda: diff({}, many(20_001)), exercise=REFUSED, told="20,000 files"),
    Row(what="everything deleted", patch=lambda: diff(BASE, {}), exercise=PARTLY, repository=APPLIED,
        after={"add.py": None}),
    # Patches that are not whole, or not right
    Row(what="cut off in the middle of a hunk", patch=sample("truncated"), exercise=REFUSED, told="cut off|corrupt"),
    Row(what="cut off behind a hunk's first line", patch=PLAIN + PLAIN[: PLAIN.index(" def")], exercise=REFUSED,
        told="cut off|corrupt"),
    Row(what="cut off between `---` and `+++`", patch=PLAIN + PLAIN[: PLAIN.index("+++")], exercise=REFUSED,
        told="one side"),
    Row(what="cut off between `+++` and the first hunk", patch=PLAIN + PLAIN[: PLAIN.index("@@")],
        exercise=REFUSED, told="first hunk"),
    Row(what="cut off behind `diff --git` (as after any whole section, nobody can tell)", patch=PLAIN
        + PLAIN[: PLAIN.index("---")], exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="up to three lines of context missing at the end",
        patch=PLAIN.replace("-1,2 +1,2", "-1,5 +1,5"), exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="hunk that promises too many lines, with prose behind it",
        patch=PLAIN.replace("-1,2 +1,2", "-1,9 +1,9") + "Done.\n", exercise=APPLIED, repository=REFUSED,
        told="corrupt", after=DONE_IS_NEW),
    Row(what="hunk that promises too few lines", patch=PLAIN.replace("-1,2 +1,2", "-1,2 +1,1"),
        exercise=APPLIED, repository=REFUSED, told="counts are wrong", after=DONE_IS_NEW),
    Row(what="count of 5,000 digits", patch=PLAIN.replace("-1,2", "-1," + "9" * 5000), exercise=REFUSED,
        told="hunk's first line"),
    Row(what="count in other digits than ours", patch=PLAIN.replace("-1,2", "-1,٢"), exercise=REFUSED,
        told="hunk's first line"),
    Row(what="hunk without lines", patch=PLAIN.replace("@@ -1,2 +1,2 @@",
        "@@ -1,0 +1,0 @@\n@@ -1,2 +1,2 @@"), exercise=REFUSED, told="corrupt"),
    Row(what="hunk that belongs to no file", patch="@@ -1 +1 @@\n-x\n+y\n", exercise=REFUSED, told="no file"),
    Row(what="one file twice, the second time as the first left it", patch=PLAIN + SWAPPED, exercise=APPLIED,
        after={"add.py": DONE.replace(b"a + b", b"b + a")}),
    Row(what="the same change twice", patch=PLAIN + PLAIN, exercise=REFUSED, told="does not apply"),
    Row(what="one hunk that does not fit", patch=PLAIN + PLAIN.replace("return a + b", "return b + a"),
        exercise=REFUSED, told="does not apply"),
    Row(what="one hunk that does not fit, of a file that does not count in an exercise",
        patch=PLAIN + PLAIN.replace("add.py", "notes.txt"), exercise=PARTLY,
        repository=REFUSED, told="does not apply", after=DONE_IS_NEW),
    Row(what="prose and a fence around it", patch=sample("ok_fenced"), exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="prose alone", patch=sample("garbage"), exercise=REFUSED, told="no diff"),
    Row(what="blanks alone", patch=sample("whitespace"), exercise=LEFT_OUT),
    Row(what="combined diff of a merge", patch="diff --cc add.py\n@@@ -1,1 -1,1 +1,1 @@@\n- x\n",
        exercise=REFUSED, told="no file"),
    # Patches that contradict themselves
    Row(what="`rename to` another name than `diff --git`: the former counts",
        patch=moved("rename", "sum.py", header="notes.txt"), exercise=APPLIED, after={"add.py": None, "sum.py": STUB}),
    Row(what="`rename to` another name than `+++`", patch=moved("rename", "sum.py",
        "--- a/add.py", "+++ b/add_test.py", "@@ -1 +1 @@", "-x", "+y"), exercise=REFUSED, told="two names"),
    Row(what="`diff --git` with one name, `---` and `+++` with another",
        patch=PLAIN.replace("diff --git a/add.py b/add.py", "diff --git a/notes.txt b/notes.txt"),
        exercise=REFUSED, told="two names"),
    Row(what="`diff --git` with two names: `---` and `+++` count",
        patch=PLAIN.replace("diff --git a/add.py", "diff --git a/notes.txt"), exercise=APPLIED, after=DONE_IS_NEW),
    Row(what="`---` and `+++` with two names after `diff --git`",
        patch=PLAIN.replace("+++ b/add.py", "+++ b/add_test.py"), exercise=REFUSED, told="two names"),
    Row(what="both new and deleted",
        patch=section("add.py", "add.py", "new file mode 100644", "deleted file mode 100644"), exercise=REFUSED,
        told="deleted and new"),
    Row(what="both renamed and copied", patch=moved("rename", "sum.py", "copy from add.py"), exercise=REFUSED,
        told="copy and rename"),
    Row(what="`/dev/null` on both sides", patch="--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n",
        exercise=REFUSED, told="/dev/null"),
    Row(what="`/dev/null` for a file that is changed", patch=PLAIN.replace("--- a/add.py", "--- /dev/null"),
        exercise=REFUSED, told="old contents"),
    Row(what="new file that is there already", patch=added("add.py"), exercise=REFUSED, told="already exists"),
    Row(what="deleted file that is not there",
        patch=section("src/deep.py", "src/deep.py", "deleted file mode 100644"), exercise=REFUSED,
        told="does not apply"),
    Row(what="file named `dev/null`", patch=added("dev/null"), exercise=LEFT_OUT, repository=APPLIED,
        after={"dev/null": b"x\n"}),
    Row(what="other prefixes than `a/` and `b/`",
        patch=PLAIN.replace("a/add.py", "old/add.py").replace("b/add.py", "new/add.py"), exercise=APPLIED,
        after=DONE_IS_NEW),
    Row(what="no prefixes (git would take a folder for one)",
        patch=PLAIN.replace("a/add.py", "src/deep.py").replace("b/add.py", "src/deep.py"),
        files={**BASE, "src/deep.py": STUB}, exercise=APPLIED, repository=REFUSED, told="differently",
        after={"src/deep.py": DONE}),
    Row(what="unknown escape in a quoted name", patch=PLAIN.replace("--- a/add.py", '--- "a/\\x61dd.py"'),
        exercise=REFUSED, told="escape"),
)  # fmt: skip


def decided(task: Task, patch: str) -> tuple[str, str, Mapping[str, bytes | None]]:
    """The decision, the sentence, and what is new in the tree."""
    before = task.tree.files()
    found = run_check.select(task, patch)
    if isinstance(found, Verdict):
        return REFUSED, found.reason, {}
    try:
        after = patched(before, found.patch).files
    except PatchError as error:
        return REFUSED, str(error), {}
    new = {path: after.get(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if not found.patch:
        return LEFT_OUT, "", new
    return PARTLY if found.dropped else APPLIED, "", new


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_every_odd_patch_has_its_decision(row: Row) -> None:
    patch = row.patch if isinstance(row.patch, str) else row.patch()
    for task, wanted in (
        (exercise(row.files), row.exercise),
        (repository(row.files, "Add."), row.repository or row.exercise),
    ):
        decision, sentence, new = decided(task, patch)
        assert decision == wanted, sentence
        assert bool(new) == (decision in (APPLIED, PARTLY))
        if new:
            assert {path: new[path] for path in row.after} == row.after
        if decision == REFUSED:
            assert re.search(row.told, sentence) and len(sentence) < 500


def test_no_kind_of_patch_is_decided_twice() -> None:
    assert len({row.what for row in ROWS}) == len(ROWS)
