"""Which tests belong to what a patch edits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from retrial.benchmarks.swebench.nearby_tests import LIMIT, choose, is_test

TEST = b"def test_it():\n    pass\n"
UNITTEST = b"class ItTests(TestCase):\n    def test_it(self):\n        pass\n"

# What a repository has beside the pair in question, so that some words are common and some are rare.
OTHERS = ("alpha", "beta", "gamma", "delta", "epsilon")

LAYOUTS = {
    "beside, named before": ("app/sum.py", "app/test_sum.py", TEST),
    "beside, named after": ("app/sum.py", "app/sum_test.py", TEST),
    "a folder beside": ("app/core/sum.py", "app/core/tests/test_sum.py", TEST),
    "mirrored at the top": ("src/app/core/sum.py", "tests/core/test_sum.py", TEST),
    "flattened": ("app/ext/sum.py", "tests/test_ext_sum.py", TEST),
    "one file for a package": ("app/sums/base.py", "tests/sums_tests/tests.py", UNITTEST),
    "any name among tests": ("src/app/sum.py", "testing/python/sum.py", TEST),
    "a package by its folder": ("app/sum/__init__.py", "tests/test_sum.py", TEST),
    "singular and plural": ("app/query.py", "tests/queries/tests.py", UNITTEST),
    "go": ("core/sum.go", "core/sum_test.go", b"func TestSum(t *testing.T) {}\n"),
    "javascript": ("lib/sum.js", "lib/sum.test.js", b"test('adds', () => {})\n"),
    "javascript, a folder": ("lib/sum.js", "lib/__tests__/sum.js", b"describe('sum', () => {})\n"),
    "typescript": ("src/sum.ts", "src/sum.spec.ts", b"  it('adds', () => {})\n"),
    "java": ("src/main/java/org/x/Sum.java", "src/test/java/org/x/SumTest.java", b"    @Test\n    void adds() {}\n"),
    "rust": ("src/sum.rs", "tests/sum.rs", b"#[test]\nfn adds() {}\n"),
    "ruby": ("lib/app/sum.rb", "spec/app/sum_spec.rb", b"describe Sum do\nend\n"),
    "php": ("src/Sum.php", "tests/SumTest.php", b"    public function testAdds(): void {}\n"),
    "c++": ("include/sum.h", "test/sum-test.cc", b"TEST(sum, adds) {}\n"),
}


@pytest.mark.parametrize(("source", "test", "content"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_test_is_found_by_its_place_and_name(source: str, test: str, content: bytes) -> None:
    others = {re.sub("sums?|Sum|queries", other, test) for other in OTHERS}
    files = {source: b"", test: content, **dict.fromkeys(others, content)}
    assert len(files) == len(OTHERS) + 2
    assert choose([source], files)[0] == test


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("tests/conftest.py", b"def test_client():\n    pass\n"),
        ("tests/__init__.py", TEST),
        ("tests/test_data.py", b"ROWS = [1, 2]\n"),
        ("tests/models.py", b"class Author:\n    pass\n"),
        ("app/test/client.py", b"def test_settings():\n    pass\n"),
        ("app/testing/runner.py", b"class Runner:\n    def test_file(self, name):\n        pass\n"),
        ("app/unittest.py", b"class TestCaseFunction:\n    pass\n"),
        ("tests/test_sum.txt", TEST),
        ("tests/data/test_sum.json", b"{}"),
        ("src/sum.rs", b"#[test]\nfn adds() {}\n"),
        ("spec/spec_helper.rb", b"describe Sum do\nend\n"),
        ("test/gtest.h", b"#define TEST(a, b)\nTEST(a, b) {}\n"),
    ],
)
def test_what_a_runner_would_not_run_is_no_test(path: str, content: bytes) -> None:
    assert not is_test(path, {path: content})
    assert choose(["tests/sum.py", path], {path: content}) == ()


def test_a_test_is_found_by_what_it_speaks_of() -> None:
    files = {f"tests/{other}/tests.py": UNITTEST for other in OTHERS}
    files["app/db/compiler.py"] = b"class Compiler:\n    def ordered_rows(self):\n        pass\n"
    files["tests/delta/tests.py"] += b"ordered_rows()\n"
    assert choose(["app/db/compiler.py"], files) == ("tests/delta/tests.py",)


def test_an_import_is_enough() -> None:
    files = {f"tests/{other}/tests.py": UNITTEST for other in OTHERS}
    files["app/db/compiler.py"] = b"class Compiler:\n    pass\n"
    files["tests/gamma/tests.py"] += b"from app.db.compiler import *\n"
    assert choose(["app/db/compiler.py"], files) == ("tests/gamma/tests.py",)


def test_a_name_counts_the_more_the_fewer_tests_have_it() -> None:
    files = {f"tests/{other}/tests.py": UNITTEST + b"run()\n" for other in OTHERS}
    files["app/compiler.py"] = b"def run():\n    pass\n\n\ndef unroll():\n    pass\n"
    files["tests/zeta/tests.py"] = UNITTEST + b"unroll()\n"
    assert choose(["app/compiler.py"], files)[0] == "tests/zeta/tests.py"


def test_a_file_whose_names_all_tests_have_does_not_hide_its_own_test() -> None:
    files = {f"tests/test_{other}.py": TEST + b"Field\n" for other in OTHERS}
    files["app/std.py"] = b"class Field:\n    pass\n"
    files["tests/test_std.py"] = TEST
    assert choose(["app/std.py"], files)[0] == "tests/test_std.py"


def test_of_two_that_are_as_near_the_larger_comes_first() -> None:
    files = {f"tests/{other}/test_sum.py": TEST for other in OTHERS}
    files["tests/gamma/test_sum.py"] = TEST * 20
    assert choose(["app/sum.py"], files)[0] == "tests/gamma/test_sum.py"


def test_each_of_several_edited_files_has_its_test() -> None:
    files = {f"tests/test_{other}.py": TEST for other in OTHERS} | {f"app/{other}.py": b"" for other in OTHERS}
    assert set(choose(["app/beta.py", "app/delta.py"], files)) == {"tests/test_beta.py", "tests/test_delta.py"}


def test_the_test_of_one_edited_file_comes_before_one_that_has_a_little_of_many() -> None:
    files = {f"tests/test_{other}.py": TEST for other in OTHERS} | {"tests/test_all.py": TEST}
    for other in OTHERS:
        names = [f"{other}_{number}".encode() for number in range(3)]
        files[f"app/{other}.py"] = b"".join(b"def %b(): pass\n" % name for name in names)
        files[f"tests/test_{other}.py"] += b"\n".join(names)
        files["tests/test_all.py"] += names[0] + b"\n"
    assert "tests/test_all.py" not in choose([f"app/{other}.py" for other in OTHERS], files)


def test_a_file_that_the_patch_adds_goes_by_its_path() -> None:
    files = {f"tests/{other}/tests.py": UNITTEST for other in OTHERS}
    assert choose(["app/delta/parts.py"], files) == ("tests/delta/tests.py",)


def test_a_test_that_was_edited_belongs_to_the_edit() -> None:
    files = {f"tests/test_{other}.py": TEST for other in OTHERS}
    assert choose(["tests/test_beta.py"], files) == ("tests/test_beta.py",)


def test_what_is_written_about_the_code_does_not_count_beside_it() -> None:
    files = {f"tests/test_{other}.py": TEST for other in OTHERS}
    assert choose(["app/beta.py", "docs/gamma.rst"], files) == ("tests/test_beta.py",)
    assert choose(["docs/gamma.rst"], files) == ("tests/test_gamma.py",)


def test_tests_in_another_language_than_the_edit_are_left_alone() -> None:
    files = {"js_tests/actions.test.js": b"test('x', f)\n", "tests/test_actions.py": TEST}
    assert choose(["admin/actions.py"], files) == ("tests/test_actions.py",)


def test_nothing_is_chosen_where_nothing_belongs() -> None:
    files = {f"tests/test_{other}.py": TEST for other in OTHERS}
    assert choose(["setup/omega.py"], files) == ()
    assert choose([], files) == ()
    assert choose(["app/beta.py"], {}) == ()


def test_there_are_at_most_so_many_best_first() -> None:
    files = {f"tests/{other}/test_sum.py": TEST * number for number, other in enumerate(OTHERS, 1)}
    chosen = choose(["app/sum.py"], files, limit=3)
    assert chosen == ("tests/epsilon/test_sum.py", "tests/delta/test_sum.py", "tests/gamma/test_sum.py")
    more = {f"tests/{number}/test_sum.py": TEST for number in range(9)}
    assert len(choose(["app/sum.py"], files | more)) == LIMIT


def test_what_is_far_less_near_than_the_best_is_not_worth_running() -> None:
    files = {f"app/{other}/tests/test_{other}.py": TEST for other in OTHERS}
    files |= {f"app/delta/parts/more/tests/test_{number}_{number}.py": TEST for number in range(3)}
    files["app/delta/delta.py"] = b"def unroll():\n    pass\n"
    files["app/delta/tests/test_delta.py"] += b"unroll()\n"
    assert choose(["app/delta/delta.py"], files) == ("app/delta/tests/test_delta.py",)


def test_neither_order_nor_repetition_changes_the_choice() -> None:
    files = {f"tests/{other}/test_sum.py": TEST for other in OTHERS}
    turned = dict(reversed(files.items()))
    assert choose(["b/sum.py", "a/sum.py"], files) == choose({"a/sum.py": "", "b/sum.py": ""}, turned)


class Watched(Mapping[str, bytes]):
    """Files that know which of them were read."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.read: set[str] = set()

    def __getitem__(self, path: str) -> bytes:
        content = self._files[path]
        self.read.add(path)
        return content

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def test_only_tests_and_what_was_edited_is_read() -> None:
    needed = {"app/sum.py": b"", "tests/test_sum.py": TEST}
    files = Watched(
        {**needed, "app/other.py": b"", "locale/de.po": b"", "static/sum.js": b"", "app/sum.so": b"\x7fELF"}
    )
    assert choose(["app/sum.py"], files) == ("tests/test_sum.py",)
    assert files.read == set(needed)
