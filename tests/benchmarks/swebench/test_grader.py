"""The grader that a check of SWE-bench names: how it is opened, and when it asks the reference."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import pytest

from retrial.benchmarks.swebench.official_grader import GRADER, OfficialCheck
from retrial.checks import Check
from retrial.errors import NetworkNeeded
from retrial.grading.judge import judge, own_grader
from retrial.protocols import Grader
from retrial.types import Execution, Outcome, Status, Verdict
from tests.support.rows import CHECK, FAILED, PASSED, REQUIRED, output

OFFLINE = ("ERROR t.py::new - Could not resolve host", "PASSED t.py::old")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherData:
    identity: str = ""


def opened(check: Check = CHECK) -> Grader:
    grader = own_grader(check)
    assert grader is not None
    return grader


def verdict(*lines: str) -> Verdict:
    status = 0 if lines == PASSED else 1
    return judge(CHECK, Execution(exit_code=status, stdout=output(*lines), stderr="", seconds=1.0))


def never() -> Verdict:
    raise AssertionError("the reference was asked")


def test_a_check_without_one_is_judged_by_its_report() -> None:
    assert own_grader(Check(script="", files={}, result_parser="languages.junit")) is None


def test_a_check_with_its_grader_travels_as_plain_data() -> None:
    there: Check = pickle.loads(pickle.dumps(CHECK))
    assert there == CHECK and there.digest == CHECK.digest
    assert opened(there).required == ("t.py::new", "t.py::old")


def test_it_refuses_what_another_grader_goes_by() -> None:
    with pytest.raises(TypeError, match="OtherData"):
        own_grader(replace(CHECK, grader=GRADER, grader_data=OtherData()))


def test_only_the_tests_are_part_of_a_checks_digest() -> None:
    assert replace(CHECK, fresh=True).digest == CHECK.digest
    other = OfficialCheck(tests=replace(REQUIRED, fail_to_pass=("t.py::other",)))
    assert replace(CHECK, grader_data=other).digest != CHECK.digest


def test_tests_that_were_green_take_the_place_of_those_that_must_go_on_to_pass() -> None:
    grader = opened(opened().requiring(CHECK, ("t.py::a", "t.py::b")))
    assert grader.required == ("t.py::new", "t.py::a", "t.py::b")
    assert grader.not_passed({"t.py::new": Status.PASSED, "t.py::a": Status.FAILED}) == ["t.py::a", "t.py::b"]


def test_where_nothing_is_in_doubt_the_reference_is_not_asked() -> None:
    for lines in (PASSED, FAILED):
        seen = verdict(*lines)
        assert opened().settle(CHECK, seen, never, is_reference=False) == seen


def test_a_run_that_misses_the_network_as_the_reference_does_is_not_measured() -> None:
    seen = verdict(*OFFLINE)
    assert seen.outcome is Outcome.TESTS_FAILED
    with pytest.raises(NetworkNeeded, match="use --network"):
        opened().settle(CHECK, seen, never, is_reference=True)
    with pytest.raises(NetworkNeeded, match="use --network"):
        opened().settle(CHECK, seen, lambda: verdict(*OFFLINE), is_reference=False)
    assert opened().settle(CHECK, seen, lambda: verdict(*PASSED), is_reference=False) == seen


@pytest.mark.parametrize(
    ("path", "network", "official"),
    [("a.py", False, False), ("setup.py", False, None), ("setup.py", True, False)],
)
def test_the_official_runner_would_have_fetched_what_a_patch_depends_on(
    path: str, network: bool, official: bool | None
) -> None:
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-0\n+1\n"
    check, seen = replace(CHECK, network=network), verdict(*FAILED)
    assert opened().official(check, patch, seen) is official
    assert opened().official(check, patch, replace(seen, dropped=("t.py",))) is None
