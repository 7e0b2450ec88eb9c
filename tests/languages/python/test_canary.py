"""Canaries for Python: which literal of which test becomes another, and what pytest's reports and words say of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import Exercism
from retrial.checks import Canary, Check
from retrial.grading import canaries as planting
from retrial.grading.reference_runs import reference
from retrial.grading.run_check import run_check
from retrial.grading.verdict_cache import Verdicts
from retrial.languages import junit
from retrial.languages.canaries.candidates import candidates
from retrial.languages.python import canary as python_canary
from retrial.languages.python.canary import canaries
from retrial.patches import apply
from retrial.protocols import Sandbox
from retrial.types import Execution, Outcome, Verdict
from tests.support.exercises import write_exercise

PATH = "sum_up_test.py"


def made(source: str) -> tuple[Canary, ...]:
    return canaries({PATH: dedent(source).encode()})


def strong(source: str) -> list[str]:
    return [canary.of for canary in made(source) if canary.strong]


def of(body: str) -> list[str]:
    """Of a file with one test, a method."""
    source = "import unittest\n\n\nclass SumUpTest(unittest.TestCase):\n    def test_it(self):\n"
    return [each.removeprefix("test_it: ") for each in strong(source + indent(dedent(body), " " * 8))]


@pytest.mark.parametrize(
    ("body", "best"),
    [
        ("self.assertEqual(add(1, 2), 3)", "3 is 2"),
        ("self.assertEqual(3, add(1, 2))", "3 is 2"),
        ("self.assertEqual(add(1, -2), -1, 'seven')", "1 is 2"),
        ("expected = 'abc'\nself.assertEqual(add('a', 'bc'), expected)", "'abc' is 'abd'"),
        ("result = add(1, 2)\nself.assertEqual(result, 3)", "3 is 2"),
        ("self.assertListEqual(add([1], [2]), [\n    1,\n    2,\n])", "1 is 2"),
        ("self.assertDictEqual(tally('a'), {'key': 'value'})", "'value' is 'valuf'"),
        ("self.assertIs(even(2), True)", "True is False"),
        ("self.assertTrue(add(1, 2) == 3)", "3 is 2"),
        ("self.assertEqual(code(7), [0x7F])", "0x7F is 0x7E"),
        ("self.assertEqual(Clock(8, 0), Clock(7, 60))", "7 is 6"),
        ("assert add(1, 2) == 3, 'not 9'", "3 is 2"),
        ("assert (add(1, 2) == 3 and add(2, 2) == 4)", "3 is 2"),
        ("for a, b, total in [(1, 2, 3), (4, 5, 9)]:\n    self.assertEqual(add(a, b), total)", "3 is 2"),
        ("cases = ((1, 3),)\nfor a, b in cases:\n    with self.subTest(a):\n        assert f(a) == b", "3 is 2"),
        ("self.assertTreeEquals(turn(tree), Tree('x'))", "'x' is 'y'"),
        ("self.assert_leaf(build([1, 2]), node_id=5, msg='no 8')", "5 is 4"),
        ("assert half(7) == approx(3.5, abs=0.1)", "3.5 is 2.5"),
        (
            "with self.assertRaises(ValueError) as error:\n    add(1)\nassert error.exception.args == ('no',)",
            "'no' is 'np'",
        ),
    ],
)
def test_what_a_test_expects_becomes_another(body: str, best: str) -> None:
    assert of(body)[0] == best


@pytest.mark.parametrize(
    "body",
    [
        "self.assertRegex(name(), r'[A-Z]{2}')",
        "self.assertNotEqual(add(1, 2), 4)",
        "self.assertGreater(add(1, 2), 2)",
        "self.assertRaises(ValueError, add, 1)",
        "with self.assertRaisesRegex(ValueError, 'text'):\n    add(1, 2)",
        "if windows():\n    self.assertEqual(add(1, 2), 3)",
        "def later():\n    self.assertEqual(add(1, 2), 3)\nrun(later)",
        "try:\n    self.assertEqual(add(1, 2), 3)\nfinally:\n    close()",
        "self.assertEqual(add(a, b), values[3])",
        "self.assertEqual(add(a, b), f'{a} and {b}')",
        "add(1, 2)",
        "'''Just words.'''",
    ],
)
def test_what_may_hold_all_the_same_or_is_not_always_reached_is_left_alone(body: str) -> None:
    assert of(body) == []


@pytest.mark.parametrize(
    "decorator", ["@unittest.skip('not now')", "@pytest.mark.xfail", "@unittest.expectedFailure", "@given(st.text())"]
)
def test_a_test_that_need_not_run_is_not_copied(decorator: str) -> None:
    assert strong(f"{decorator}\ndef test_it():\n    assert add(1, 2) == 3\n") == []


def test_what_is_put_in_serves_only_where_nothing_that_is_expected_does() -> None:
    assert of("self.assertEqual(add(1, 2), [])") == ["1 is 2", "2 is 1"]
    assert of("values = [7]\nself.assertIsNone(first(values))") == ["7 is 6"]
    assert of("self.assertEqual(add(1, 2), 3)") == ["3 is 2"]


def test_the_surest_tests_come_first() -> None:
    assert strong("""\
        class SumUpTest(TestCase):
            def test_empty(self):
                self.assertTrue(is_empty(5))

            def test_refused(self):
                with self.assertRaises(ValueError) as error:
                    add()
                self.assertEqual(error.exception.args[0], "text")

            def test_length(self):
                self.assertEqual(len(add([], [])), 0)

            def test_sum(self):
                self.assertEqual(add(1, 2), 3)
        """) == ["test_sum: 3 is 2", "test_length: 0 is 1", 'test_refused: "text" is "texu"', "test_empty: 5 is 4"]


def test_a_constant_becomes_another_that_the_tests_expect_somewhere() -> None:
    source = """\
        def test_low():
            assert level(1) == Level.LOW

        def test_high():
            assert level(9) == Level.HIGH

        def test_colour():
            assert colour() == RED
        """
    assert strong(source)[:2] == ["test_low: Level.LOW is Level.HIGH", "test_high: Level.HIGH is Level.LOW"]
    assert not any("RED" in each for each in strong(source))


def test_a_column_of_parameters_is_known_by_what_the_test_does_with_it() -> None:
    assert strong("""\
        @pytest.mark.parametrize("total, a, b", [(3, 1, 2), pytest.param(9, 4, 5, id="more")])
        def test_sums(total, a, b):
            assert add(a, b) == total
        """) == ["test_sums: 3 is 2", "test_sums: 9 is 8"]


TWO_CLASSES = """\
import unittest

from sum_up import add


class First(unittest.TestCase):
    def test_one(self):
        self.check(1, 2, 3)

    def check(self, a, b, total):
        self.assertEqual(add(a, b), total)


@decorated
class Second(unittest.TestCase):
    value = 5

    @also
    def test_two(
        self,
    ):
        self.assertEqual(add(2, 3), 5)  # with words

    async def test_three(self):
        \"\"\"It has some.\"\"\"
        self.assertEqual(add(self.value, 3), 8)


def test_apart():
    assert add(1, 1) == 2"""


def test_copies_stay_in_their_class_and_leave_a_file_that_can_be_parsed() -> None:
    found = canaries({PATH: TWO_CLASSES.encode()})
    assert {len(canary.places) for canary in found} == {1, 2}
    for canary in found:
        for place in canary.places:
            check = Check(script="", files={PATH: TWO_CLASSES.encode()}, result_parser="languages.junit")
            planted = planting.plant(check, (replace(canary, places=(place,)),))
            owner = {"test_one": "First", "test_apart": ""}.get(canary.of.partition(":")[0], "Second")
            if canary.strong:
                assert owners(planted.files[PATH])[planted.planted[0]] == owner


def owners(source: bytes) -> dict[str, str]:
    """Function → the class it is in."""
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = node.name if isinstance(node, ast.ClassDef) else ""
        found |= {each.name: owner for each in inner if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def test_only_tests_that_are_wanted_are_copied_and_the_others_are_places() -> None:
    file = python_canary.tests(PATH, TWO_CLASSES.encode(), lambda test: test == ("Second", "test_three"))
    assert [canary.of for canary in candidates([file]) if canary.strong] == ["test_three: 8 is 7"]
    assert len(candidates([file])[0].places) == 2


@pytest.mark.parametrize(
    "head",
    [
        '@pytest.mark.parametrize("row", ROWS)\ndef test_rows(row):',
        "def test_rows(row=ROWS[0]):",
        "def test_rows(row: ROWS):",
        "def test_rows() -> ROWS:",
    ],
)
def test_a_copy_is_never_put_above_what_its_definition_evaluates(head: str) -> None:
    source = f"def test_first():\n    assert add(1, 1) == 2\n\n\nROWS = [1]\n\n\n{head}\n    assert add(1, 2) == 3\n"
    found = {canary.test: canary.places for canary in made(source)}
    assert found["test_rows"] == (source.index(head),)
    assert set(found["test_first"]) == {0, source.index(head)}


def test_a_weak_one_uses_the_assertion_and_the_parameters_of_its_neighbour() -> None:
    (method,) = made("class A(TestCase):\n    def test_it(self, opened):\n        self.assertRegex(f(), 'a')\n")
    assert (method.strong, method.text) == (
        False,
        "    def RETRIAL_CANARY(self, opened):\n        self.assertEqual(1, 2)\n\n",
    )
    (function,) = made("def test_it(tmp_path=(1, 2)):\n    assert run(tmp_path)\n")
    assert function.text == "def RETRIAL_CANARY(tmp_path=(1, 2)):\n    assert 1 == 2\n\n"


def test_only_files_of_tests_have_canaries() -> None:
    source = b"def test_it():\n    assert add(1, 2) == 3\n"
    assert canaries({"helper.py": source, "data/test_it.txt": source}) == ()
    assert {canary.path for canary in canaries({"a/test_it.py": source, "it_test.py": source})} == {
        "a/test_it.py",
        "it_test.py",
    }


def test_old_syntax_is_no_hindrance() -> None:
    assert strong("""\
        def test_old():
            print "old"
            try:
                pass
            except ValueError, error:
                raise
            assert add(1, 2) == 3
        """) == ["test_old: 3 is 2"]


@given(st.binary() | st.text().map(str.encode))
def test_whatever_a_file_holds_it_can_be_asked(source: bytes) -> None:
    assert all(canary.path == PATH for canary in canaries({PATH: source}))


@given(st.data())
def test_a_damaged_file_of_tests_can_be_asked_and_planted(data: st.DataObject) -> None:
    source = TWO_CLASSES.encode()
    start, length = data.draw(st.integers(0, len(source))), data.draw(st.integers(0, 80))
    damaged = source[:start] + data.draw(st.binary(max_size=8)) + source[start + length :]
    found = canaries({PATH: damaged})
    check = Check(script="", files={PATH: damaged}, result_parser="languages.junit")
    assert len(planting.plant(check, found).planted) == len(found)


MIXED = """\
import unittest

import pytest


class SumTest(unittest.TestCase):
    def test_wrong_sum(self):
        self.assertEqual(1, 2)

    def test_canary(self):
        print("=" * 9, "nothing", "=" * 9)
        self.assertEqual(helper(), 4)

    def test_broken(self):
        raise ValueError("AssertionError: 3 != 4")

    def test_each(self):
        for value in (1, 2, 3):
            with self.subTest(value=value):
                self.assertEqual(value, 2)


def helper():
    return 3


@pytest.fixture
def broken():
    assert False


def test_bare():
    assert helper() == 4, "why"


def test_missing_exception():
    with pytest.raises(ValueError):
        pass


def test_deep():
    test_deep()


def test_given_up():
    pytest.fail("AssertionError")


def test_setup(broken):
    pass


def test_fine():
    pass
"""


@dataclass(frozen=True, slots=True)
class Session:
    text: str
    execution: Execution


def session(folder: Path, source: str, *arguments: str) -> Session:
    (folder / PATH).write_text(source)
    options = ("-v", "-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider", "--junitxml=report.xml", *arguments)
    command = [sys.executable, "-I", "-m", "pytest", *options, PATH]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    reports = {"report.xml": (folder / "report.xml").read_bytes()}
    execution = Execution(exit_code=done.returncode, stdout=done.stdout, stderr="", seconds=1.0, reports=reports)
    return Session(done.stdout, execution)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return session(tmp_path_factory.mktemp("mixed"), MIXED)


def test_only_failed_assertions_count_as_asserted(mixed: Session) -> None:
    assert {test.rpartition("::")[2] for test in junit.asserted(mixed.execution, {})} == {
        "test_wrong_sum",
        "test_canary",
        "test_each",
        "test_bare",
        "test_missing_exception",
    }


def test_the_words_about_a_canary_go_and_all_others_stay(mixed: Session) -> None:
    left = junit.without(mixed.text, "test_canary")
    removed = [line for line in mixed.text.splitlines() if line not in left.splitlines()]
    assert "test_canary" not in left
    assert "3 != 4" not in left.replace("AssertionError: 3 != 4", "")
    assert all(word not in line for line in removed[:-1] for word in ("test_wrong", "test_broken", "test_each", "bare"))
    assert [line.strip("= ") for line in removed if " in " in line and "failed" in line]
    failures = mixed.text.count("\nFAILED ") + mixed.text.count("\nSUBFAILED")
    assert f"{failures - 1} failed" in left.splitlines()[-1]


def test_where_only_the_canary_failed_nothing_looks_like_a_failure(tmp_path: Path) -> None:
    source = "def test_fine():\n    pass\n\n\ndef test_canary():\n    print('words')\n    assert 1 == 2\n"
    left = junit.without(session(tmp_path, source).text, "test_canary")
    assert "test_fine PASSED" in left
    assert left.splitlines()[-1].strip("= ").startswith("1 passed in")
    assert not any(word in left for word in ("fail", "FAIL", "Error", "assert", "words", "summary"))


def test_every_case_of_a_canary_goes(tmp_path: Path) -> None:
    source = (
        "import pytest\n\n\n@pytest.mark.parametrize('value', [1, 2, 3])\n"
        "def test_canary(value):\n    assert value == 2\n\n\ndef test_wrong():\n    assert 1 == 2\n"
    )
    left = junit.without(session(tmp_path, source).text, "test_canary")
    assert "test_canary" not in left
    assert left.splitlines()[-1].strip("= ").startswith("1 failed, 1 passed in")


@given(st.text(), st.text())
def test_words_that_do_not_name_the_canary_are_not_touched(before: str, after: str) -> None:
    text = f"{before}\n{after}"
    assert junit.without(text.replace("test_canary", ""), "test_canary") == text.replace("test_canary", "")


@pytest.mark.parametrize(
    "line", ["_" * 2_000_000, "= " * 1_000_000, "=== 1 failed, " * 100_000, "___ test_canary\n" * 99_999]
)
def test_megabytes_of_rules_are_read_through_once(line: str) -> None:
    assert "test_canary" not in junit.without(f"{line}\ntest_canary\n", "test_canary")


SHAPES = """\
import unittest

import pytest

from {module} import add


class SumUpTest(unittest.TestCase):
    def check(self, a, b, total):
        self.assertEqual(add(a, b), total)

    def test_checked(self):
        self.check(1, 2, 3)

    def test_each(self):
        for a, b, total in [(1, 1, 2), (2, 2, 4)]:
            with self.subTest(a=a):
                self.assertEqual(add(a, b), total)


@pytest.mark.parametrize("a, b, total", [(0, 0, 0), (5, -5, 0)])
def test_given(a, b, total):
    assert add(a, b) == total
"""
EQUAL_TO_ALL = """\
class Value(int):
    def __eq__(self, other):
        return True


def add(a, b):
    return Value()
"""
READS_CALLER = """\
import sys


def add(a, b):
    return sys._getframe(1).f_locals["total"]
"""


@pytest.mark.real
def test_a_canary_of_any_shape_tells_what_forces_success_from_what_is_right_and_what_is_wrong(
    tmp_path: Path, bwrap: Sandbox
) -> None:
    benchmark = Exercism(write_exercise(tmp_path, tests=SHAPES), "shapes")
    (task,) = benchmark.tasks()
    answer = benchmark.answer(task.instance_id)
    known = reference(task, answer, bwrap, Verdicts(tmp_path))
    assert known.canaries and all(canary.strong for canary in known.canaries)
    shapes = {canary.test: canary for canary in known.canaries}
    assert set(shapes) == {"test_checked", "test_each", "test_given"}

    def scored(solution: str) -> Verdict:
        base = task.tree.files()
        patch = apply.diff(base, {**base, "sum_up.py": solution.encode()})
        check = replace(known.strict(answer.check), canaries=())
        return run_check(task, patch, planting.plant(check, shapes.values()), bwrap)

    for forced in (EQUAL_TO_ALL, READS_CALLER):
        verdict = scored(forced)
        assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "canary"), verdict.reason
        assert "FAILED" not in verdict.stdout, "one of the three would not have caught it"
    assert scored("def add(*both):\n    print('PASSED')\n    return sum(both)\n").resolved
    assert scored("def add(a, b):\n    return a - b\n").outcome is Outcome.TESTS_FAILED
