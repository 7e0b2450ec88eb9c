"""Which canaries go into the hidden tests of a repository."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.swebench import canaries as swebench_canaries
from retrial.grading import canaries
from retrial.types import Canary, Check, Required
from tests.support.image_task import NEW_TESTS

PATH = "tests/test_calc.py"
REQUIRED = Required(
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


def found(source: str, required: Required = REQUIRED) -> tuple[Canary, ...]:
    return swebench_canaries.candidates(required, {PATH: source.encode()})


def planted(source: str, required: Required = REQUIRED) -> str:
    check = Check(script="", files={PATH: source.encode()}, reader="")
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
