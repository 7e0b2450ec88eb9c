from __future__ import annotations

from pathlib import Path

import pytest

from retrial.errors import PatchError
from retrial.patches.apply import apply, diff, patched
from retrial.patches.parser import normalise, parse
from retrial.patches.policy import select
from tests.support.odd_patches import BASE, DONE, PLAIN, STUB, after, everything, sample, section

# What is applied, and how


@pytest.mark.parametrize("name", ["ok_plain", "ok_fenced", "ok_no_final_newline", "ok_mode"])
def test_an_honest_patch_applies(name: str) -> None:
    assert after(sample(name)) == {**BASE, "add.py": DONE}


def test_a_well_formed_patch_is_selected_as_it_is_written() -> None:
    assert select(PLAIN, everything).patch == PLAIN


def test_a_patch_that_makes_a_file_executable_says_so() -> None:
    assert patched(BASE, sample("ok_mode")).executable == {"add.py"}
    assert patched(BASE, PLAIN).executable == frozenset()


def test_a_rename_moves_the_file() -> None:
    assert after(sample("ok_rename")) == {
        "sum.py": STUB,
        "add_test.py": BASE["add_test.py"],
        "notes.txt": b"one\ntwo\n",
    }


def test_a_copy_leaves_its_source() -> None:
    copy = section("add.py", "sum.py", "similarity index 100%", "copy from add.py", "copy to sum.py")
    assert after(copy) == {**BASE, "sum.py": STUB}


def test_a_quoted_path_is_read() -> None:
    assert after(sample("ok_unicode_path")) == {**BASE, "add.py": DONE, "café.txt": b"x\n"}


def test_bytes_that_are_not_utf8_are_kept() -> None:
    assert after(sample("bad_utf8"))["add.py"] == b"def add(a, b):\n    return a + b  # caf\xe9\n"


def test_a_patch_that_was_carried_about_with_crlf_applies_to_lf() -> None:
    assert after(PLAIN.replace("\n", "\r\n")) == {**BASE, "add.py": DONE}
    assert after("\ufeff" + PLAIN) == {**BASE, "add.py": DONE}


def test_a_file_with_crlf_keeps_it() -> None:
    old, new = STUB.replace(b"\n", b"\r\n"), DONE.replace(b"\n", b"\r\n")
    patch = diff({"add.py": old}, {"add.py": new})
    assert after(patch, {"add.py": old}) == {"add.py": new}


@pytest.mark.parametrize("counts", ["-1,2 +1,2", "-1,9 +1,9", "-1,1 +1,1", "-1 +1,2", "-1,2 +1,7"])
@pytest.mark.parametrize("end", ["```\nDone.\n", "-- \n2.39.5\n\n", PLAIN.replace("add.py", "other.py")])
def test_wrong_hunk_counts_are_put_right(counts: str, end: str) -> None:
    files = {**BASE, "other.py": STUB}
    result = after(PLAIN.replace("-1,2 +1,2", counts) + end, files)
    assert result == {**files, "add.py": DONE, **({"other.py": DONE} if "other" in end else {})}


@pytest.mark.parametrize("counts", ["-1,1 +1,1", "-1 +1,2", "-1,5 +1,5"])
@pytest.mark.parametrize("end", ["", "\n\n"])
def test_counts_that_are_too_small_are_put_right_at_the_end_too(counts: str, end: str) -> None:
    assert after(PLAIN.replace("-1,2 +1,2", counts) + end) == {**BASE, "add.py": DONE}


@pytest.mark.parametrize("counts", ["-1,9 +1,9", "-1,2 +1,7", "-1,3 +1,2", "-1,6 +1,6"])
@pytest.mark.parametrize("end", ["", "\n\n"])
def test_a_patch_that_ends_before_its_last_hunk_does_is_refused(counts: str, end: str) -> None:
    with pytest.raises(PatchError, match="cut off"):
        after(PLAIN.replace("-1,2 +1,2", counts) + end)


def test_wrong_hunk_counts_do_not_swallow_the_next_file() -> None:
    bare = PLAIN[PLAIN.index("---") :].replace("-1,2 +1,2", "-1,5 +1,5")
    files = {**BASE, "other.py": STUB}
    assert after(bare + bare.replace("add.py", "other.py"), files) == {**files, "add.py": DONE, "other.py": DONE}


def test_a_removed_line_that_looks_like_a_header_is_a_removed_line() -> None:
    old, new = b"-- a/x\n++ b/x\nlast\n", b"@@ -1 +1 @@\nlast\n"
    assert after(diff({"q.sql": old}, {"q.sql": new}), {"q.sql": old}) == {"q.sql": new}


def test_a_binary_file_that_would_unfold_into_gigabytes_is_refused() -> None:
    head = "diff --git a/big.py b/big.py\nnew file mode 100644\nindex 000..111\nGIT binary patch\n"
    with pytest.raises(PatchError, match="larger than 10 MB"):
        after(f"{head}literal 1150000000\nzcmV~$0|0x8\n\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add.py", "add.py"),
        ("./add.py", "./add.py"),
        ("old/add.py", "new/add.py"),
        ("i/add.py", "w/add.py"),
        ("add.py.orig", "add.py"),
        ("a/add.py\t2024-05-01 10:00:00", "b/add.py\t2024-05-01 10:00:01"),
    ],
)
def test_names_are_read_with_any_prefix_or_none(old: str, new: str) -> None:
    hunk = PLAIN[PLAIN.index("@@") :]
    assert after(f"--- {old}\n+++ {new}\n{hunk}") == {**BASE, "add.py": DONE}


def test_a_git_patch_without_prefix_is_read() -> None:
    assert after(PLAIN.replace("a/", "").replace("b/", "")) == {**BASE, "add.py": DONE}
    deep = {"src/add.py": STUB, "add.py": STUB}
    assert after(PLAIN.replace("a/", "src/").replace("b/", "src/"), deep) == {"src/add.py": DONE, "add.py": STUB}


def test_plain_diffs_add_and_delete() -> None:
    add = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"
    epoch = "--- old/more.py\t1970-01-01 00:00:00.000000000 +0000\n+++ new/more.py\t2024-01-01\n@@ -0,0 +1 @@\n+y\n"
    delete = "--- a/notes.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    assert after(add + epoch + delete) == {
        "add.py": STUB, "add_test.py": BASE["add_test.py"], "new.py": b"x\n", "more.py": b"y\n",
    }  # fmt: skip


def test_a_file_that_was_touched_and_not_changed_is_no_change() -> None:
    assert after("diff --git a/notes.txt b/notes.txt\n" + PLAIN) == {**BASE, "add.py": DONE}


def test_a_file_may_give_way_to_a_folder() -> None:
    old, new = {"x": b"1\n", "y/z": b"2\n"}, {"x/deep": b"1\n", "y": b"2\n"}
    assert after(diff(old, new), old) == new


@pytest.mark.parametrize("blank", ["", "\n", "  \n\n", "\r\n", "\ufeff"])
def test_a_blank_patch_is_empty(blank: str) -> None:
    assert normalise(blank) == ""
    assert parse(blank) == ()
    assert select(blank, everything).patch == ""
    assert patched(BASE, blank).files == BASE
    assert normalise(sample("whitespace")) == ""


# What is refused


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("absolute", "/tmp/study_escape.txt"),
        ("traversal", "../escape.txt"),
        ("git_hook", ".git/hooks"),
        ("garbage", "no diff"),
    ],
)
def test_a_hostile_or_senseless_patch_is_refused_whole(name: str, what: str) -> None:
    with pytest.raises(PatchError, match=what):
        select(PLAIN + sample(name) if name != "garbage" else sample(name), everything)


@pytest.mark.parametrize(
    "path", [".GIT/config", "sub/.git/hooks/x", "a//x", "x/../../y", "./../x", "x/./y", "\\001", "x\\n", "sub/"]
)
def test_a_path_that_no_patch_may_name_is_refused(path: str) -> None:
    for form in (f'--- /dev/null\n+++ "b/{path}"\n', f'diff --git "a/{path}" "b/{path}"\nnew file mode 100644\n'):
        with pytest.raises(PatchError, match=r"path|which file"):
            parse(form + "@@ -0,0 +1 @@\n+x\n")


@pytest.mark.parametrize(
    "patch",
    [
        PLAIN.replace("+++ b/add.py", "+++ b/add_test.py"),
        section("add.py", "sum.py", "rename from add.py"),
        section(
            "add.py",
            "sum.py",
            "rename from add.py",
            "rename to sum.py",
            "--- a/add.py",
            "+++ b/add_test.py",
            "@@ -1 +1 @@",
            "-x",
            "+y",
        ),
        section("add.py", "sum.py", "rename from add.py", "copy to sum.py"),
        section("add.py", "sum.py", "rename from add.py", "rename to ../sum.py"),
        section("add.py", "add.py", "new file mode 100644", "deleted file mode 100644"),
        section("add.py", "add.py", "new file mode 10"),
        section("add.py", "sum.py", "old mode 100644", "new mode 100755"),
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n",
        PLAIN[: PLAIN.index("@@")],
        "--- a/add.py\n+++ b/add.py\n@@ def add @@\n-x\n+y\n",
        "diff --cc add.py\n@@@ -1,1 -1,1 +1,1 @@@\n- x\n -y\n++z\n",
        PLAIN + "\ud83d",
    ],
)
def test_a_patch_that_contradicts_itself_is_refused(patch: str) -> None:
    with pytest.raises(PatchError):
        after(patch)


@pytest.mark.parametrize(
    "patch",
    [
        PLAIN.replace("raise", "return"),
        PLAIN.replace("-    raise NotImplementedError\n+", " "),
        "--- /dev/null\n+++ b/add.py\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/add.py/x\n@@ -0,0 +1 @@\n+x\n",
        section("gone.py", "new.py", "rename from gone.py", "rename to new.py"),
        section("add.py", "add.py", "index 1234567..89abcde 100644", "Binary files a/add.py and b/add.py differ"),
        section("add.py", "add.py", "index 1234567..89abcde 100644"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_with_a_sentence(patch: str) -> None:
    with pytest.raises(PatchError, match=r"does not apply: .+"):
        after(patch)


def test_one_hunk_that_does_not_fit_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_bytes(STUB)
    (tmp_path / "notes.txt").write_bytes(b"other\n")
    with pytest.raises(PatchError, match=r"notes\.txt"):
        apply(tmp_path, PLAIN + diff({"notes.txt": b"one\n"}, {"notes.txt": b"two\n"}))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"add.py": STUB, "notes.txt": b"other\n"}


@pytest.mark.parametrize("name", ["symlink_dir_read", "symlink_out", "symlink_write", "submodule"])
def test_symlinks_and_submodules_are_dropped_and_listed(name: str) -> None:
    selection = select(sample(name), everything)
    assert {"leak.txt", "add_test.py", "d", "sub"} & set(selection.dropped)
    assert "120000" not in selection.patch and "160000" not in selection.patch
    with pytest.raises(PatchError, match="no file"):
        patched(BASE, sample(name))


def test_a_patch_that_is_far_too_large_is_refused() -> None:
    with pytest.raises(PatchError, match="MB"):
        parse(PLAIN + "x" * 20_000_000)


def test_names_and_modes_are_told() -> None:
    changes = parse(sample("ok_rename") + sample("submodule") + sample("ok_mode"))
    assert [(change.old, change.new, change.mode, change.regular) for change in changes] == [
        ("add.py", "sum.py", "", True),
        (None, "sub", "160000", False),
        ("add.py", "add.py", "100755", True),
    ]
    assert not any(change.copied for change in changes)
