"""The pinned package `swebench` is what our one module takes it for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from retrial import registry
from retrial.benchmarks.swebench import official_grader
from retrial.benchmarks.swebench.official_grader import OfficialTests
from retrial.types import Status
from tests.conftest import PROJECT

REQUIRED = OfficialTests(parser="parse_log_pytest", fail_to_pass=("t.py::new",), pass_to_pass=("t.py::old",))


def log(*lines: str) -> str:
    return "\n".join([f"+ : '{official_grader.START}'", *lines, f"+ : '{official_grader.END}'", ""])


def test_all_required_tests_passed_is_resolved() -> None:
    graded = official_grader.grade(REQUIRED, log("PASSED t.py::new", "PASSED t.py::old", "FAILED t.py::other - no"))
    assert (graded.resolved, graded.found) == (True, True)
    assert graded.tests == {
        "t.py::new": Status.PASSED,
        "t.py::old": Status.PASSED,
        "t.py::other": Status.FAILED,
    }


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("PASSED t.py::new", "FAILED t.py::old - no"), True),
        (("PASSED t.py::old",), True),
        (("SKIPPED t.py::new", "PASSED t.py::old"), True),
        (("nothing that a parser knows",), False),
    ],
)
def test_a_required_test_that_did_not_pass_is_not_resolved(lines: tuple[str, ...], found: bool) -> None:
    graded = official_grader.grade(REQUIRED, log(*lines))
    assert (graded.resolved, graded.found) == (False, found)


def test_a_log_without_its_end_is_not_read() -> None:
    whole = log("PASSED t.py::new", "PASSED t.py::old")
    assert not official_grader.grade(REQUIRED, whole.partition(f"+ : '{official_grader.END}'")[0]).found


def test_any_line_that_calls_a_test_failed_is_seen() -> None:
    lines = ("FAILED t.py::new - no", "PASSED t.py::new", "ERROR t.py::old", "ERROR:", "E   FAILED x", "PASSED t.py::x")
    before = "FAILED t.py::x - before the tests\n"
    assert official_grader.failures(REQUIRED, before + log(*lines)) == {"t.py::new", "t.py::old"}
    django = replace(REQUIRED, parser="parse_log_django")
    assert official_grader.failures(django, log("test_a (m.T) ... FAIL", "ERROR:", "test_a (m.T) ... ok")) == {
        "test_a (m.T)"
    }
    # Of others a name may well stand for several tests.
    assert not official_grader.failures(replace(REQUIRED, parser="parse_log_gotest"), log("--- FAIL: TestA (0.00s)"))


@pytest.mark.parametrize(
    ("parser", "odd"),
    [
        ("parse_log_sympy", " " * 400_000),
        ("parse_log_django", f"x ... {official_grader.SLOW} \n" * 40_000),
        ("parse_log_pytest", "1" * 400_000),
    ],
)
def test_no_log_is_read_for_ever(parser: str, odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official_grader, "SECONDS", 3.0)
    required = replace(REQUIRED, parser=parser)
    assert not official_grader.grade(required, log(odd)).found


def test_a_long_log_says_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = log("PASSED t.py::new", "PASSED t.py::old", "FAILED t.py::other - no", "ERROR t.py::old")
    required = replace(REQUIRED, pass_to_pass=())

    def said() -> tuple[object, ...]:
        found = official_grader.grade(required, lines), official_grader.failures(required, lines)
        return *found, official_grader.report("a__b-1", required, "a patch", lines), official_grader.failure(lines)

    short = said()
    monkeypatch.setattr(official_grader, "ORDINARY", 0)
    assert said() == short and short[0] == official_grader.grade(required, lines)


def test_the_report_of_an_instance_has_the_official_fields() -> None:
    report = official_grader.report("a__b-1", REQUIRED, "a patch", log("PASSED t.py::new", "PASSED t.py::old"))
    found = report["a__b-1"]
    assert found["resolved"] is True and found["patch_successfully_applied"] is True
    assert found["tests_status"]["FAIL_TO_PASS"] == {"success": ["t.py::new"], "failure": []}


def test_a_line_that_a_parser_did_not_think_of_is_a_log_that_cannot_be_read() -> None:
    required = OfficialTests(parser="parse_log_django", fail_to_pass=("test_a (tests.T)",))
    text = log("test_a (tests.T) ... ok", "ERROR:")
    assert not official_grader.grade(required, text).found
    assert official_grader.report("a__b-1", required, "a patch", text) == {}


def test_parsers_that_go_by_the_instance_are_told_which_it_is() -> None:
    required = OfficialTests(
        parser="parse_log_jekyll",
        instance_id="jekyll__jekyll-9141",
        repo="jekyll/jekyll",
        version="9141",
        fail_to_pass=("one",),
    )
    assert official_grader.grade(required, log("nothing")).tests == {}


def test_a_broken_environment_is_told_from_a_wrong_patch() -> None:
    reason, sure = official_grader.failure("fork: Cannot allocate memory\n")
    assert reason and sure
    assert official_grader.failure("AssertionError\n") == ("", False)


def test_every_parser_has_a_language_and_python_is_one_of_ours() -> None:
    parsers = official_grader.parsers()
    assert parsers["parse_log_django"] == parsers["parse_log_sympy"] == "python"
    assert parsers["parse_log_gotest"] == "go"
    assert {"python", "go", "rust", "java", "javascript"} <= set(parsers.values()) & set(registry.names("languages"))


def test_nothing_else_of_the_package_is_loaded() -> None:
    code = (
        "import sys; from retrial.benchmarks.swebench import official_grader; official_grader.parsers();"
        "print(*{'datasets', 'modal', 'docker', 'pandas', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_a_status_that_no_failure_explains_makes_a_log_unreadable() -> None:
    whole = log("PASSED t.py::new", "PASSED t.py::old")
    assert official_grader.grade(REQUIRED, f"{whole}{official_grader.STATUS}: 0\n").resolved
    assert not official_grader.grade(REQUIRED, f"{whole}{official_grader.STATUS}: 3\n").found


def test_what_is_installed_is_what_is_asked_for() -> None:
    pinned = (PROJECT / "requirements-nodeps.txt").read_text().splitlines()[-1]
    assert pinned == f"swebench=={official_grader.VERSION}"


@pytest.mark.parametrize(
    "line",
    [
        "curl: (6) Could not resolve host: example.org",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "OSError: [Errno 101] Network is unreachable",
        "socket.gaierror: [Errno -2] Name or service not known",
        "dial tcp: lookup example.org: no such host",
        "Error: getaddrinfo ENOTFOUND example.org",
        "java.net.UnknownHostException: example.org",
    ],
)
def test_a_missing_network_is_recognized_in_a_log(line: str) -> None:
    assert official_grader.network_missing(f"begun\n{line}\nended\n") in line
    assert official_grader.network_missing(f"begun\n{line}\nended\n")


def test_what_the_official_classifier_takes_for_a_missing_network_is_recognized() -> None:
    log = "OSError: Network is unreachable\ngaierror: Temporary failure in name resolution\n"
    assert official_grader.failure(log) == ("network_unreachable", True)
    assert official_grader.failure(official_grader.network_missing(log)) == ("network_unreachable", True)
    assert official_grader.network_missing("FAILED test_a - AssertionError\n") == ""
