"""Exercises with tests for Node's own runner: found by their text, run and judged as those for Jest are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import Exercism
from retrial.checks import Check
from retrial.grading.reference_runs import Reference, reference
from retrial.grading.run_check import run_check
from retrial.grading.verdict_cache import Verdicts
from retrial.language import Suite
from retrial.languages.javascript import make
from retrial.patches import apply
from retrial.types import Outcome, Status, Task, Verdict
from tests.parts import ready

TESTS = """\
const { describe, it, test } = require('node:test');
const assert = require('node:assert');
const { add } = require('./add');

test('two numbers', () => assert.strictEqual(add(1, 2), 3));
describe('others', () => {
  it('a negative one', () => assert.deepEqual([add(1, -2)], [-1]));
  it('one that waits', { skip: true }, () => assert.fail());
});
"""
HONEST = "exports.add = (a, b) => a + b;\n"
FILES = {
    "add.js": "exports.add = () => { throw new Error('todo'); };\n",
    "add.test.js": TESTS,
    "package.json": '{"scripts": {"test": "true"}}',
    ".docs/instructions.md": "Add two numbers.",
    ".meta/proof.ci.js": HONEST,
    ".meta/config.json": json.dumps(
        {"files": {"solution": ["add.js"], "test": ["add.test.js"], "example": [".meta/proof.ci.js"]}}
    ),
}


@pytest.mark.parametrize(
    "text",
    [
        "const test = require('node:test');",
        'const { it } = require( "node:test" );',
        "import test from 'node:test';",
        "import { test } from\n  'node:test';",
        "import 'node:test';",
        "await import('node:test');",
    ],
)
def test_tests_that_import_nodes_runner_are_run_by_it(text: str) -> None:
    for hidden in (False, True):
        script = script_for(text, hidden=hidden)
        assert "node --test " in script
        assert "jest.js " not in script
        assert "npm test" not in script


@pytest.mark.parametrize(
    "text", ["test('a', f);", "// not node:test", "const a = 'node:test';", "require('node:tests')"]
)
def test_all_others_are_run_by_jest(text: str) -> None:
    assert "npm test" in script_for(text, hidden=False)
    assert "jest.js " in script_for(text, hidden=True)


def script_for(text: str, *, hidden: bool) -> str:
    contents = {"add.test.js": text.encode()}
    return make().script(Suite(solution=("add.js",), tests=("add.test.js",), contents=contents, hidden=hidden))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Exercism:
    root = tmp_path_factory.mktemp("benchmark")
    folder = root / "javascript" / "exercises" / "practice" / "add"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return Exercism(root, "node")


@pytest.fixture(scope="module")
def task(benchmark: Exercism) -> Task:
    return benchmark.tasks()[0]


@pytest.fixture(scope="module")
def known(benchmark: Exercism, task: Task, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder: Path = tmp_path_factory.mktemp("cache")
    sandbox = ready("bwrap", task.environment)
    return reference(task, benchmark.answer(task.instance_id), sandbox, Verdicts(folder))


def checked(task: Task, check: Check, solution: str) -> Verdict:
    base = task.tree.files()
    patch = apply.diff(base, {**base, "add.js": solution.encode()})
    return run_check(task, patch, check, ready("bwrap", task.environment))


@pytest.mark.real
def test_the_reference_shows_every_test_and_proves_a_strong_canary(known: Reference) -> None:
    assert known.expected == {
        "add.test.js::two numbers": Status.PASSED,
        "add.test.js::others › a negative one": Status.PASSED,
        "add.test.js::others › one that waits": Status.SKIPPED,
    }
    assert known.canaries
    assert all(canary.strong for canary in known.canaries)


@pytest.mark.real
def test_an_honest_solution_is_resolved_and_what_is_shown_names_no_failure(
    benchmark: Exercism, task: Task, known: Reference
) -> None:
    verdict = checked(task, known.strict(benchmark.answer(task.instance_id).check), HONEST)
    assert (verdict.outcome, verdict.proof) == (Outcome.RESOLVED, "canary")


@pytest.mark.real
@pytest.mark.parametrize(
    "solution",
    [
        "const assert = require('node:assert');\n"
        "assert.strictEqual = assert.deepEqual = () => {};\n"
        "exports.add = () => 0;",
        "const { AsyncResource } = require('node:async_hooks');\n"
        "const run = AsyncResource.prototype.runInAsyncScope;\n"
        "AsyncResource.prototype.runInAsyncScope = function (work, self, ...rest) {\n"
        "  return self?.constructor?.name === 'TestContext' ? undefined : run.call(this, work, self, ...rest);\n"
        "};\n"
        "exports.add = () => 0;",
    ],
    ids=["assertions that do nothing", "tests that are not run"],
)
def test_a_solution_that_forces_success_is_caught_by_the_canary(
    solution: str, benchmark: Exercism, task: Task, known: Reference
) -> None:
    verdict = checked(task, known.strict(benchmark.answer(task.instance_id).check), solution)
    assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "canary")


@pytest.mark.real
def test_a_wrong_solution_is_wrong_and_not_tampered(benchmark: Exercism, task: Task, known: Reference) -> None:
    wrong = "exports.add = (a, b) => a - b;"
    for check in (benchmark.visible(task.instance_id), known.strict(benchmark.answer(task.instance_id).check)):
        verdict = checked(task, check, wrong)
        assert verdict.outcome is Outcome.TESTS_FAILED
        assert verdict.tests["add.test.js::two numbers"] is Status.FAILED


@pytest.mark.real
def test_the_lint_takes_both_kinds_of_modules(benchmark: Exercism, task: Task) -> None:
    verdict = checked(task, benchmark.visible(task.instance_id), "return;\n" + HONEST)
    assert verdict.lint == ()
    broken = checked(task, benchmark.visible(task.instance_id), HONEST + "exports.add = ;\n")
    assert broken.outcome is Outcome.BUILD_FAILED
    assert broken.lint[0] == "add.js:2"
