"""What a log says of canaries, and what it would be without them."""

from __future__ import annotations

import pytest

from retrial.benchmarks.swebench import canary_logs, official_grader
from retrial.types import Check, Required, Status

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
    required = Required(parser=parser)
    graded = official_grader.grade(required, f"{official_grader.START}\n{log}\n{official_grader.END}\n")
    return canary_logs.failed(required, graded.tests, canary_logs.apart(log, NAMES))


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
    rest = canary_logs.apart(PYTEST, NAMES).rest
    assert not any(name in rest for name in NAMES)
    assert "t.py:4: AssertionError" not in rest and "PASSED of old" not in rest
    assert "E       KeyError: 1\n" in rest and "FAILED t.py::T::test_other - KeyError: 1\n" in rest
    assert rest.endswith("========================= 3 failed, 1 passed in 0.01s ==========================\n")


def test_colours_do_not_hide_where_it_ends() -> None:
    kept = "\x1b[31m_____ T.x _____\x1b[0m\nkept"
    coloured = f"\x1b[31m\x1b[1m_____ T.test_small_values _____\x1b[0m\nE   AssertionError\n{kept}"
    found = canary_logs.apart(coloured, NAMES)
    assert found.rest == kept
    assert list(found.about["test_small_values"]) == ["_____ T.test_small_values _____", "E   AssertionError"]


def test_lines_between_the_frames_of_a_failure_do_not_end_it() -> None:
    log = "____ test_two_lines ____\n\n_ _ _ _ _ _ _ _\nE   assert 1 == 2\n____ test_x ____\n"
    assert canary_logs.apart(log, NAMES).rest == "____ test_x ____\n"


CHECK = Check(script="", files={}, reader="", planted=NAMES)
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
    assert canary_logs.own_status(ENDED, tests, CHECK) == ENDED.replace(": 1", f": {status}")


def test_a_status_that_was_printed_by_a_test_stays_as_it_was_printed() -> None:
    printed = f"{official_grader.STATUS}: 1\n{ENDED}"
    found = canary_logs.own_status(printed, {"t.py::test_two_lines": Status.FAILED}, CHECK)
    assert found.startswith(f"{official_grader.STATUS}: 1\n") and found.count(f"{official_grader.STATUS}: 0") == 2


def test_a_status_that_only_begins_like_that_of_failed_tests_is_another() -> None:
    ended = ENDED.replace(": 1", ": 10")
    assert canary_logs.own_status(ended, {"t.py::test_two_lines": Status.FAILED}, CHECK) == ended
