"""JavaScript: which tests are switched on, what Jest's report says, and what a patch may add."""

from __future__ import annotations

import base64
import json
import re

import pytest

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Check
from retrial.grading.run_check import run_check
from retrial.language import Suite
from retrial.languages.javascript import make
from retrial.languages.javascript import results as reader
from retrial.patches import apply, policy
from retrial.system.paths import PROJECT
from retrial.types import Execution, Outcome, Status, Task, Verdict
from tests.parts import ready

PREPARE = PROJECT / "docker" / "prepare" / "javascript"


def unskipped(text: str) -> str:
    return make().checked({"a.spec.js": text.encode()})["a.spec.js"].decode()


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("xtest('a', () => {});", "test('a', () => {});"),
        ("  xit ('a', () => {});", "  it ('a', () => {});"),
        ("xdescribe('a', () => { xtest('b', f) });", "describe('a', () => { test('b', f) });"),
        ("xtest.each([[1], [2]])('%i', f);", "test.each([[1], [2]])('%i', f);"),
        ("xit.each`\n  a\n  ${1}\n`('$a', f);", "it.each`\n  a\n  ${1}\n`('$a', f);"),
        ("xtest(\n  'ünï',\n  f,\n);", "test(\n  'ünï',\n  f,\n);"),
    ],
)
def test_every_test_that_waits_for_its_turn_is_run(written: str, run: str) -> None:
    assert unskipped(written) == run


@pytest.mark.parametrize(
    "text", ["test.skip('optional', f);", "process.exit(1);", "a.xit();", "maxit(1);", "$xit(1);", "const xits = 1;"]
)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert unskipped(text) == text


def test_only_test_files_are_changed() -> None:
    files = {"helper.js": b"xtest('a', f)", "data/xtest.txt": b"xtest('a', f)"}
    assert make().checked(files) == files


def test_a_helper_of_the_tests_is_not_run_as_one() -> None:
    suite = Suite(solution=("a.js",), tests=("a.spec.js", "cases.js", "__mocks__/fs.js"), hidden=True)
    assert make().script(suite).endswith(" --runTestsByPath a.spec.js\n")


def test_nothing_that_a_task_has_set_ends_the_tests_early() -> None:
    assert " --bail=0 " in make().script(Suite(solution=("a.js",), tests=("a.spec.js",), hidden=True))


def said(*suites: object) -> Execution:
    report = json.dumps({"testResults": list(suites)}).encode()
    return Execution(exit_code=1, stdout="", stderr="", seconds=0.1, reports={"jest.json": report})


def suite(*tests: tuple[str, str], status: str = "passed") -> dict[str, object]:
    rows = [{"ancestorTitles": ["A"], "title": name, "status": what} for name, what in tests]
    return {"name": "/tmp/job/two-bucket/sub/a.spec.js", "status": status, "assertionResults": rows}


def test_each_test_has_its_own_status_and_a_relative_name() -> None:
    tests = [("b", "passed"), ("c", "failed"), ("d", "pending"), ("e", "todo"), ("f", "who knows")]
    assert reader.read(said(suite(*tests, status="failed"))) == {
        "sub/a.spec.js::A › b": Status.PASSED,
        "sub/a.spec.js::A › c": Status.FAILED,
        "sub/a.spec.js::A › d": Status.SKIPPED,
        "sub/a.spec.js::A › e": Status.SKIPPED,
        "sub/a.spec.js::A › f": Status.ERROR,
    }


def test_two_tests_of_one_name_are_two() -> None:
    assert reader.read(said(suite(("b", "failed"), ("b", "passed"), ("b", "passed"), status="failed"))) == {
        "sub/a.spec.js::A › b": Status.FAILED,
        "sub/a.spec.js::A › b #2": Status.PASSED,
        "sub/a.spec.js::A › b #3": Status.PASSED,
    }


def test_a_file_that_could_not_be_run_is_an_error_of_its_own() -> None:
    assert reader.read(said(suite(status="failed"))) == {"sub/a.spec.js": Status.ERROR}


def test_a_file_that_failed_beside_its_tests_did_not_pass() -> None:
    found = reader.read(said(suite(("b", "passed"), status="failed")))
    assert found == {"sub/a.spec.js::A › b": Status.PASSED, "sub/a.spec.js": Status.ERROR}


def test_a_file_that_failed_beside_a_test_that_did_is_still_an_error() -> None:
    found = reader.read(said({**suite(("b", "failed"), status="failed"), "coverage": {}}))
    assert found == {"sub/a.spec.js::A › b": Status.FAILED, "sub/a.spec.js": Status.ERROR}


def test_any_number_of_tests_of_one_name_is_read_in_no_time() -> None:
    assert len(reader.read(said(suite(*[("b", "passed")] * 100_000)))) == 100_000


def test_a_file_without_tests_did_not_pass() -> None:
    assert reader.read(said(suite())) == {"sub/a.spec.js": Status.SKIPPED}


def test_without_a_whole_report_nothing_is_read() -> None:
    nothing = Execution(exit_code=0, stdout="", stderr="", seconds=0.1)
    assert "no report" in str(reader.read(nothing))
    for content in (b"", b"[]", b"{", b'{"testResults": [1]}', b'{"testResults": [{"name": 1}]}', b"[" * 100_000):
        broken = Execution(exit_code=0, stdout="", stderr="", seconds=0.1, reports={"jest.json": content})
        assert "cannot be read" in str(reader.read(broken))


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2, languages=("javascript",))


@pytest.fixture
def task(benchmark: Exercism) -> Task:
    return benchmark.tasks()[0]


@pytest.mark.parametrize(
    "name",
    [
        "jest.config.js",
        "babel.config.js",
        "metro.config.js",
        ".babelrc.js",
        "jest.setup.js",
        "more.spec.js",
        "more.test.js",
        "test.js",
        "__mocks__/fs.js",
        "__tests__/more.js",
        "package.json",
        "node_modules/jest.js",
    ],
)
def test_a_file_that_a_tool_would_pick_up_by_its_name_does_not_count(name: str, task: Task) -> None:
    assert not policy.writable(task, name, task.tree.files())


def test_a_new_module_beside_the_solution_counts(task: Task) -> None:
    assert policy.writable(task, "helper.js", task.tree.files())
    assert policy.writable(task, "latest.js", task.tree.files())


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (PREPARE / "package-lock.json").read_text(encoding="utf-8")


def test_the_npm_that_is_fetched_first_is_the_one_in_the_lock_file() -> None:
    npm = json.loads((PREPARE / "package-lock.json").read_text(encoding="utf-8"))["packages"]["node_modules/npm"]
    digest = base64.b64decode(npm["integrity"].removeprefix("sha512-")).hex()
    assert f"npm@{npm['version']}+sha512.{digest} " in (PREPARE / "prepare").read_text(encoding="utf-8")


def checked(task: Task, check: Check, solution: str) -> Verdict:
    base = task.tree.files()
    patch = apply.diff(base, {**base, task.editable[0]: solution.encode()})
    return run_check(task, patch, check, ready("bwrap", task.environment))


@pytest.mark.real
def test_the_lint_names_file_and_line(benchmark: Exercism, task: Task) -> None:
    verdict = checked(task, benchmark.visible(task.instance_id), "export const a = 1;\nexport const = 2;\n")
    assert verdict.outcome is Outcome.BUILD_FAILED
    assert verdict.lint[0] == f"{task.editable[0]}:2"
    assert verdict.lint[-1].startswith("SyntaxError: ")
    assert re.search(r"\.js:2 / SyntaxError: ", verdict.reason)


@pytest.mark.real
def test_a_solution_that_ends_the_process_in_good_order_is_no_pass(benchmark: Exercism, task: Task) -> None:
    verdict = checked(task, benchmark.answer(task.instance_id).check, "process.exit(0);\n")
    assert (verdict.outcome, verdict.exit_code) == (Outcome.BUILD_FAILED, 0)
    assert "process.exit called" in verdict.reason
