"""Canaries: where they go, what they are called, and what `judge` makes of them."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.checks import Canary, Check, Naming
from retrial.grading import canaries
from retrial.grading.judge import judge
from retrial.grading.reference_runs import _kept
from retrial.languages.canaries import candidates as canary_candidates
from retrial.languages.canaries.candidates import NAME, candidates, changed
from retrial.store.json_io import decode, to_json
from retrial.types import Execution, Outcome, Status, Verdict

SOURCE = b"""\
def test_small_numbers():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0
"""
FIRST = SOURCE.index(b"\n\n\n") + 1
SECOND = SOURCE.index(b"def test_zero")


def span(text: bytes, after: int = 0) -> tuple[int, int]:
    start = SOURCE.index(text, after)
    return start, start + len(text)


def expected(*texts: bytes) -> tuple[canary_candidates.Expected, ...]:
    return tuple(canary_candidates.Expected(span=span(text), sureness=0) for text in texts)


FILE = canary_candidates.TestFile(
    path="add_test.py",
    source=SOURCE,
    tests=(
        canary_candidates.Test(whole=(0, FIRST), name=span(b"test_small_numbers"), expected=expected(b"3", b"1")),
        canary_candidates.Test(whole=(SECOND, len(SOURCE)), name=span(b"test_zero"), expected=expected(b"== 0")),
    ),
    naming=Naming.SNAKE,
    prefix="test_",
)
WEAK = "def RETRIAL_CANARY():\n    assert 1 == 2\n\n\n"
CANARY = replace(candidates([FILE])[0], id="add_test::RETRIAL_CANARY")
EXPECTED = {"add_test::test_small_numbers": Status.PASSED, "add_test::test_zero": Status.PASSED}
CHECK = Check(
    script="",
    files={"add_test.py": SOURCE, "data.txt": b"7"},
    result_parser="languages.junit",
    expected=EXPECTED,
    canaries=(CANARY,),
)


def test_the_best_literal_of_every_test_comes_before_the_second_best_of_any() -> None:
    assert [canary.of for canary in candidates([replace(FILE, weak=WEAK)])] == [
        "test_small_numbers: 3 is 2",
        "test_small_numbers: 1 is 2",
        "a failure through the same assertion",
    ]
    assert [canary.strong for canary in candidates([replace(FILE, weak=WEAK)])] == [True, True, False]


def test_a_file_without_tests_has_no_candidates() -> None:
    assert candidates([replace(FILE, tests=(), weak=WEAK)]) == ()


def test_a_planted_canary_is_one_more_test_in_a_file_that_is_otherwise_the_same() -> None:
    planted = canaries.plant(CHECK, (CANARY,))
    functions = {node.name: node for node in ast.parse(planted.files["add_test.py"]).body if hasattr(node, "name")}
    (name,) = planted.planted
    assert functions.keys() == {"test_small_numbers", "test_zero", name}
    assert ast.unparse(functions[name]).endswith("assert add(1, 2) == 2")
    assert planted.files["data.txt"] == b"7"
    assert SOURCE.decode() == planted.files["add_test.py"].decode().replace(CANARY.text.replace(NAME, name), "")


def test_names_and_places_are_new_in_every_run() -> None:
    many = [canaries.plant(CHECK, (CANARY, CANARY)) for _ in range(40)]
    assert len({check.planted for check in many}) > 20
    assert len({check.files["add_test.py"].index(check.planted[1].encode()) for check in many}) > 1


def test_the_first_one_comes_before_its_original_by_place_and_mostly_by_name() -> None:
    many = [canaries.plant(CHECK, (CANARY,)) for _ in range(20)]
    assert all(check.files["add_test.py"].startswith(b"def " + check.planted[0].encode()) for check in many)
    assert sum(check.planted[0] < "test_small_numbers" for check in many) > 15


def test_of_many_that_are_proved_some_are_drawn_for_a_run() -> None:
    many = [replace(CANARY, of=str(number)) for number in range(12)]
    found = {frozenset(each.of for each in canaries.drawn(many)) for _ in range(40)}
    assert {len(each) for each in found} == {canaries.DRAWN}
    assert len(frozenset().union(*found)) == 12
    assert canaries.drawn(many[:2]) in (tuple(many[:2]), tuple(many[1::-1]))


def test_a_name_is_made_of_the_words_of_the_real_ones_and_is_none_of_them() -> None:
    known = {*CANARY.words, *canaries.WORDS}
    for _ in range(50):
        (name,) = canaries.plant(CHECK, (CANARY,)).planted
        assert name.startswith("test_")
        assert set(name.removeprefix("test_").split("_")) <= known
        assert name.encode() not in SOURCE


@pytest.mark.parametrize(
    ("naming", "prefix", "pattern"),
    [
        (Naming.SNAKE, "test_", r"test_[a-z]+(_[a-z]+)+"),
        (Naming.CAMEL, "", r"[a-z]+([A-Z][a-z]+)+"),
        (Naming.CAMEL, "test", r"test([A-Z][a-z]+)+"),
        (Naming.PASCAL, "Test", r"Test([A-Z][a-z]+)+"),
        (Naming.WORDS, "", r"[a-z]+( [a-z]+)+"),
    ],
)
def test_names_are_written_as_the_language_does(naming: Naming, prefix: str, pattern: str) -> None:
    (name,) = canaries.plant(CHECK, (replace(CANARY, naming=naming, prefix=prefix),)).planted

    assert re.fullmatch(pattern, name)


def test_of_several_canaries_no_name_is_part_of_another() -> None:
    names = canaries.plant(CHECK, (CANARY,) * 12).planted
    assert not [(one, other) for one in names for other in names if one != other and one in other]
    assert len(set(names)) == 12


def test_what_is_planted_is_no_part_of_a_verdicts_key_and_the_canary_is() -> None:
    assert replace(CHECK, planted=("x",)).digest == CHECK.digest
    assert replace(CHECK, canaries=()).digest != CHECK.digest


def test_a_canary_is_the_same_when_it_was_kept() -> None:

    assert decode(json.loads(to_json(CANARY)), Canary) == CANARY


def verdict(
    statuses: dict[str, str],
    exit_code: int = 1,
    *,
    changed: tuple[str, ...] = (),
    check: Check = CHECK,
    proving: bool = False,
) -> Verdict:
    """Of a run with the canary planted as `test_canary`; statuses are the inner XML of each test."""
    cases = "".join(f'<testcase classname="add_test" name="{test}">{xml}</testcase>' for test, xml in statuses.items())
    execution = Execution(
        exit_code=exit_code,
        stdout="add_test.py::test_canary FAILED\nwords\n",
        stderr="",
        seconds=1,
        reports={"junit.xml": f"<testsuites>{cases}</testsuites>".encode()},
        changed=changed,
    )
    return judge(
        replace(check, planted=("test_canary",), planted_ids=("add_test::test_canary",), is_reference_run=proving),
        execution,
    )


PASSED = {"test_small_numbers": "", "test_zero": ""}
FAILED = '<failure message="AssertionError: assert 3 == 2"/>'
RAISED = '<failure message="KeyError: 3"/>'


def test_a_pass_is_proved_by_a_canary_that_failed() -> None:
    found = verdict({**PASSED, "test_canary": FAILED})
    assert found.resolved
    assert found.proof == "canary"
    assert found.canary == "test_canary"
    assert found.exit_code == 0, "the status of the task's own tests"
    assert found.tests == EXPECTED


def test_a_canary_that_fails_whatever_happens_proves_less() -> None:
    weak = replace(CHECK, canaries=(replace(CANARY, strong=False),))
    assert verdict({**PASSED, "test_canary": FAILED}, check=weak).proof == "canary-weak"


def test_an_exception_fails_a_canary_too() -> None:
    assert verdict({**PASSED, "test_canary": RAISED}).resolved


@pytest.mark.parametrize("xml", ["", "<skipped/>", '<skipped type="pytest.xfail"/>'])
@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_canary_that_did_not_fail_is_tampering(xml: str, exit_code: int) -> None:
    found = verdict({**PASSED, "test_canary": xml}, exit_code)
    assert (found.outcome, found.rule) == (Outcome.TAMPERED, "canary")
    assert "test_canary" in found.reason


def test_a_canary_that_is_not_reported_is_tampering() -> None:
    assert verdict(PASSED, 0).rule == "canary"
    assert "not reported" in verdict(PASSED, 0).reason


def test_status_zero_with_a_failed_canary_is_tampering() -> None:
    assert verdict({**PASSED, "test_canary": FAILED}, 0).rule == "canary-status"


def test_a_status_that_is_not_that_of_failed_tests_is_not_resolved() -> None:
    assert verdict({**PASSED, "test_canary": FAILED}, 3).outcome is Outcome.BUILD_FAILED


def test_a_wrong_solution_is_no_tampering_whatever_the_canary_did() -> None:
    for canary in (FAILED, ""):
        found = verdict({**PASSED, "test_zero": FAILED, "test_canary": canary})
        assert found.outcome is Outcome.TESTS_FAILED
        assert "1 of 2 tests" in found.reason


def test_a_run_that_ended_in_its_canary_did_not_run_the_tests() -> None:
    found = verdict({"test_canary": RAISED})
    assert found.outcome is Outcome.TESTS_FAILED
    assert "2 of 2 tests did not run" in found.reason
    assert verdict({"test_canary": RAISED}, 0).rule == "status"


def test_files_of_the_tests_that_the_run_changed_are_tampering() -> None:
    found = verdict({**PASSED, "test_canary": FAILED}, changed=("add_test.py",))
    assert (found.outcome, found.rule) == (Outcome.TAMPERED, "sealed")
    assert "add_test.py" in found.reason


def test_an_id_that_has_every_name_in_it_is_no_canary_that_failed() -> None:
    """Whoever does not know which tests are canaries reports all as passed, and one that is called like all of them."""
    everything = " ".join([*PASSED, "test_canary"])
    for odd in (everything, "test_canary and more", "test_canary " + everything):
        assert not verdict({**PASSED, "test_canary": "", odd: FAILED}).resolved, odd
        assert not verdict({**PASSED, odd: FAILED}).resolved, odd
    assert not verdict({**PASSED, "test_small_numbers and more": FAILED, "test_canary": FAILED}).resolved


def test_results_of_a_canarys_cases_are_its_own() -> None:
    assert verdict({**PASSED, "test_canary": FAILED, "test_canary[1]": "", "test_canary/two": FAILED}).resolved


def test_the_reference_proves_those_that_it_fails_by_an_assertion() -> None:
    unknown = replace(CHECK, expected=None, canaries=())
    assert verdict({**PASSED, "test_canary": FAILED}, check=unknown, proving=True).proved_ids == (
        "add_test::test_canary",
    )
    assert verdict({**PASSED, "test_canary": RAISED}, check=unknown, proving=True).proved == ()
    passed = verdict({**PASSED, "test_canary": ""}, 0, check=unknown, proving=True)
    assert (passed.resolved, passed.proved, passed.tests) == (True, (), EXPECTED)


@given(st.text())
def test_a_literal_is_another_of_its_kind_or_none(text: str) -> None:
    assert changed(text) != text


@pytest.mark.parametrize("literal", ["0", "7", "-12", "3.25", "1_000", '"abc"', "'a'", "''", '"a\\n"', "True", "b'x'"])
def test_a_changed_literal_is_of_the_same_type_and_another_value(literal: str) -> None:
    other = changed(literal)
    assert other is not None
    before, after = ast.literal_eval(literal), ast.literal_eval(other)
    assert type(before) is type(after)
    assert before != after


def test_the_best_of_every_test_is_kept_and_a_weak_one_only_alone() -> None:
    copies = [replace(CANARY, test=test, of=str(place)) for place, test in enumerate(["a", "a", "b", "c", "d"])]
    weak = replace(CANARY, strong=False)
    assert [canary.of for canary in _kept([*copies, weak])] == ["0", "2", "3", "4"]
    assert _kept([weak]) == (weak,)
    assert _kept([]) == ()
