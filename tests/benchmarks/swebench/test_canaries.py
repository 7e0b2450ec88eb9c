"""Which canaries go into the hidden tests of a repository, what a log says of them, and the log without them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.swebench import canaries as swebench_canaries
from retrial.benchmarks.swebench import official_grader
from retrial.benchmarks.swebench.official_grader import OfficialTests
from retrial.checks import Canary, Check
from retrial.grading import canaries
from retrial.types import Status
from tests.support.image_task import NEW_TESTS

PATH = "tests/test_calc.py"
REQUIRED = OfficialTests(
    parser="parse_log_pytest",
    fail_to_pass=(f"{PATH}::test_sub",),
    pass_to_pass=(f"{PATH}::test_add", f"{PATH}::test_add_nothing"),
    files=(PATH,),
)
CLASSES = """\
class AddTests(TestCase):
    def test_value(self):
        self.assertEqual(add(1, 1), 2)


class SubTests(TestCase):
    def test_value(self):
        self.assertEqual(sub(5, 3), 2)

    def test_told(self):
        \"\"\"Subtracts.\"\"\"
        self.assertEqual(sub(7, 3), 4)
"""


def found(source: str, required: OfficialTests = REQUIRED) -> tuple[Canary, ...]:
    return swebench_canaries.candidates(required, {PATH: source.encode()})


def planted(source: str, required: OfficialTests = REQUIRED) -> str:
    check = Check(script="", files={PATH: source.encode()}, result_parser="")
    return canaries.plant(check, found(source, required)).files[PATH].decode()


def test_a_weak_one_and_a_copy_of_what_the_task_is_about() -> None:
    weak, strong = found(NEW_TESTS)
    assert (weak.strong, strong.strong) == (False, True)
    assert "assert 1 == 2" in weak.text and strong.of == "test_sub: 2 is 1"
    text = planted(NEW_TESTS)
    compile(text, PATH, "exec")
    assert text.count("def test_") == NEW_TESTS.count("def test_") + 2


def test_of_two_classes_the_one_that_is_meant_is_copied() -> None:
    required = replace(REQUIRED, parser="parse_log_django", fail_to_pass=("test_value (calc.tests.SubTests)",))
    weak, strong = found(CLASSES, required)
    assert "self.assertEqual(1, 2)" in weak.text
    assert "sub(5, 3)" in strong.text and "add" not in strong.text
    compile(planted(CLASSES, required), PATH, "exec")


def test_a_test_that_is_reported_by_its_docstring_is_not_copied() -> None:
    required = replace(REQUIRED, parser="parse_log_django", fail_to_pass=("test_told (calc.tests.SubTests)",))
    assert [canary.strong for canary in found(CLASSES, required)] == [False]


def test_what_is_put_in_is_left_alone() -> None:
    source = "def test_sub():\n    assert sub(5, 3) == expected\n"
    assert [canary.strong for canary in found(source)] == [False]


def test_of_many_tests_the_shortest_are_copied() -> None:
    names = [f"test_{word}" for word in ("one", "two", "three", "four")]
    source = "".join(
        f"def {name}():\n{'    x = 1' + chr(10) if name != 'test_two' else ''}    assert sub(5, 3) == 2\n\n\n"
        for name in names
    )
    strong = found(source, replace(REQUIRED, fail_to_pass=tuple(f"{PATH}::{name}" for name in names)))[1:]
    assert len(strong) == swebench_canaries.COPIES and strong[0].of.startswith("test_two:")


def test_a_weak_one_stands_beside_a_test_without_frills() -> None:
    source = "@pytest.mark.slow\ndef test_sub(app):\n    assert 1\n\n\ndef test_add(app):\n    assert 1\n\n\n"
    (weak,) = found(source + "def test_add_nothing():\n    assert 1\n")
    assert weak.text == "def RETRIAL_CANARY():\n    assert 1 == 2\n\n"


def test_a_parametrised_test_is_known_by_its_name() -> None:
    source = "@pytest.mark.parametrize('a', [1, 2])\ndef test_sub(a):\n    assert sub(a, a) == 0\n"
    required = replace(REQUIRED, fail_to_pass=(f"{PATH}::test_sub[1]", f"{PATH}::test_sub[2]"))
    weak, strong = found(source, required)
    assert "parametrize" in weak.text and "parametrize" in strong.text


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def helper():\n    assert sub(5, 3) == 2\n",
        "def test_of_another_module():\n    assert sub(5, 3) == 2\n",
    ],
)
def test_where_none_can_be_made_there_is_none(source: str) -> None:
    assert found(source) == ()


@given(st.text(alphabet="def test_sub():\n    asr==12'\"@#[]x", max_size=200))
def test_no_file_is_too_odd(source: str) -> None:
    assert isinstance(found(source), tuple)


NAMES = ("test_small_values", "test_two_lines")
PYTEST = """\
collected 3 items
t.py FF.
=================================== FAILURES ===================================
______________________________ test_small_values _______________________________

    def test_small_values():
>       assert 1 == 2
E       assert 1 == 2

t.py:4: AssertionError
_________________________________ T.test_other _________________________________
E       KeyError: 1
________________________________ test_two_lines ________________________________
E       {}
----------------------------- Captured stdout call -----------------------------
PASSED of old
=========================== short test summary info ============================
PASSED t.py::test_fine
FAILED t.py::test_small_values - assert 1 == 2
FAILED t.py::T::test_other - KeyError: 1
FAILED t.py::test_two_lines - {}
========================= 3 failed, 1 passed in 0.01s ==========================
"""
DJANGO = """\
test_small_values (app.tests.T) ... FAIL
test_fine (app.tests.T) ... ok
test_two_lines (app.tests.T) ... {}

======================================================================
FAIL: test_small_values (app.tests.T)
----------------------------------------------------------------------
Traceback (most recent call last):
AssertionError: 1 != 2

======================================================================
{}: test_two_lines (app.tests.T)
----------------------------------------------------------------------
Traceback (most recent call last):
KeyError: 1

----------------------------------------------------------------------
Ran 3 tests in 0.001s
"""
SYMPY = """\
sympy/core/tests/test_basic.py[3]
test_fine ok
test_small_values F
test_two_lines {} [FAIL]
______________ sympy/core/tests/test_basic.py:test_small_values ________________
AssertionError
=========== tests finished: 1 passed, 2 failed, in 0.01 seconds ===========
"""


def failed(parser: str, log: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    required = OfficialTests(parser=parser)
    graded = official_grader.grade(required, f"{official_grader.START}\n{log}\n{official_grader.END}\n")
    return swebench_canaries.list_failed(required, graded.tests, swebench_canaries.split_log(log, NAMES))


@pytest.mark.parametrize(
    ("parser", "asserted", "raised"),
    [
        ("parse_log_pytest", PYTEST.format("AssertionError: no", "Assert…"), PYTEST.format("KeyError: 1", "KeyError")),
        ("parse_log_pytest_v2", PYTEST.format("assert 2 == 3", ""), PYTEST.format("KeyError: 1", "KeyError")),
        ("parse_log_django", DJANGO.format("FAIL", "FAIL"), DJANGO.format("ERROR", "ERROR")),
        ("parse_log_sympy", SYMPY.replace("{} [FAIL]", "F"), SYMPY.replace("{} [FAIL]", "E")),
    ],
)
def test_a_copy_of_a_test_must_fail_by_an_assertion(parser: str, asserted: str, raised: str) -> None:
    assert failed(parser, asserted) == (NAMES, ())
    assert failed(parser, raised) == (NAMES[:1], NAMES[1:])


def test_what_passed_or_is_not_there_has_not_failed() -> None:
    passed = PYTEST.replace("FAILED t.py::test_small", "PASSED t.py::test_small")
    assert failed("parse_log_pytest", passed) == ((), NAMES[1:])
    assert failed("parse_log_pytest", "PASSED t.py::test_fine\n") == ((), ())


def test_the_rest_is_what_the_other_tests_said() -> None:
    rest = swebench_canaries.split_log(PYTEST, NAMES).rest
    assert not any(name in rest for name in NAMES)
    assert "t.py:4: AssertionError" not in rest and "PASSED of old" not in rest
    assert "E       KeyError: 1\n" in rest and "FAILED t.py::T::test_other - KeyError: 1\n" in rest
    assert rest.endswith("========================= 3 failed, 1 passed in 0.01s ==========================\n")


def test_colours_do_not_hide_where_it_ends() -> None:
    kept = "\x1b[31m_____ T.x _____\x1b[0m\nkept"
    coloured = f"\x1b[31m\x1b[1m_____ T.test_small_values _____\x1b[0m\nE   AssertionError\n{kept}"
    found = swebench_canaries.split_log(coloured, NAMES)
    assert found.rest == kept
    assert list(found.about["test_small_values"]) == ["_____ T.test_small_values _____", "E   AssertionError"]


def test_lines_between_the_frames_of_a_failure_do_not_end_it() -> None:
    log = "____ test_two_lines ____\n\n_ _ _ _ _ _ _ _\nE   assert 1 == 2\n____ test_x ____\n"
    assert swebench_canaries.split_log(log, NAMES).rest == "____ test_x ____\n"


CHECK = Check(script="", files={}, result_parser="", planted=NAMES)
ENDED = f"x\n+ : '{official_grader.END}'\n+ echo '{official_grader.STATUS}: 1'\n{official_grader.STATUS}: 1\n+ exit 1\n"


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ({"t.py::test_small_values": Status.FAILED, "t.py::test_fine": Status.PASSED}, 0),
        ({"t.py::test_small_values": Status.FAILED, "t.py::test_fine": Status.ERROR}, 1),
        ({"t.py::test_small_values": Status.PASSED}, 1),
    ],
)
def test_the_status_is_what_the_tasks_own_tests_would_have_given(tests: dict[str, Status], status: int) -> None:
    assert swebench_canaries.set_own_status(ENDED, tests, CHECK) == ENDED.replace(": 1", f": {status}")


def test_a_status_that_was_printed_by_a_test_stays_as_it_was_printed() -> None:
    printed = f"{official_grader.STATUS}: 1\n{ENDED}"
    found = swebench_canaries.set_own_status(printed, {"t.py::test_two_lines": Status.FAILED}, CHECK)
    assert found.startswith(f"{official_grader.STATUS}: 1\n") and found.count(f"{official_grader.STATUS}: 0") == 2


def test_a_status_that_only_begins_like_that_of_failed_tests_is_another() -> None:
    ended = ENDED.replace(": 1", ": 10")
    assert swebench_canaries.set_own_status(ended, {"t.py::test_two_lines": Status.FAILED}, CHECK) == ended
