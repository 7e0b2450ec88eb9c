"""What every language keeps to, run over every part in `retrial/languages/` on every sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Canary
from retrial.grading.run_check import run_check
from retrial.language import Language, ResultParser
from retrial.patches.apply import diff
from retrial.patches.policy import matches, writable
from retrial.protocols import Sandbox
from retrial.system.paths import PROJECT
from retrial.types import Outcome, Status, Task
from tests.parts import ready

# Where tests are written, and how one begins.
A_TEST = {
    "python": ("*_test.py", r"def test_"),
    "javascript": ("*.spec.js", r"\bx?test\("),
    "go": ("*_test.go", r"func Test"),
    "rust": ("tests/*.rs", r"#\[test\]"),
    "java": ("src/test/*.java", r"@Test\b"),
    "cpp": ("*_test.cpp", r"TEST_CASE\("),
}


@pytest.fixture(params=registry.names("languages"))
def language(request: pytest.FixtureRequest) -> Language:
    part: Language = registry.module("languages", request.param).make()
    return part


@pytest.fixture(params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest, language: Language) -> Sandbox:
    return ready(request.param, language.environment)


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2)


def tasks_of(benchmark: Exercism, language: Language) -> list[Task]:
    return [task for task in benchmark.tasks() if task.language == language.name]


def test_its_data_is_whole(language: Language) -> None:
    assert re.fullmatch(r"\d+(\.\d+)*", language.minimum)
    assert all(suffix.startswith(".") for suffix in language.suffixes)
    assert language.tests
    assert language.tools
    for path in (language.result_parser, language.command_parser):
        parser: ResultParser = registry.load(path)
        assert all(map(callable, (parser.read, parser.asserted, parser.text, parser.without)))
    assert re.compile(language.error_line_pattern)
    assert language.timeout >= 60
    assert language.failure_exit_codes
    assert 0 not in language.failure_exit_codes
    assert all(re.compile(pattern) and what for pattern, what in language.suspicious)


def test_it_has_a_target_of_its_own_and_all_has_the_same_packages(language: Language) -> None:
    dockerfile = (PROJECT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert packages(dockerfile, language.name) <= packages(dockerfile, "all")
    if (PROJECT / "docker" / "prepare" / language.name).is_dir():
        store = f"/opt/retrial/{language.name}"
        assert f"COPY --from={language.name} {store} {store}\n" in dockerfile


def packages(dockerfile: str, target: str) -> set[str]:
    stage = re.search(rf"^FROM \S+ AS {target}\n(.*?)(?=^FROM |\Z)", dockerfile, re.MULTILINE | re.DOTALL)
    assert stage
    listed = re.search(r"--no-install-recommends(.*?)&&", stage[1], re.DOTALL)
    assert listed
    return set(listed[1].replace("\\", " ").split())


def test_the_demo_has_two_tasks_of_it_at_least(language: Language, benchmark: Exercism) -> None:
    assert len(tasks_of(benchmark, language)) >= 2


def test_a_test_file_cannot_be_added(language: Language, benchmark: Exercism) -> None:
    task = tasks_of(benchmark, language)[0]
    folder = task.editable[0].rpartition("/")[0]
    tests = benchmark.visible(task.instance_id).files
    assert not any(writable(task, path, task.tree.files()) for path in tests)
    assert writable(task, f"{folder}/more{language.suffixes[0]}".lstrip("/"), task.tree.files())


def test_the_same_text_has_no_new_errors(language: Language) -> None:
    files = {f"a{language.suffixes[0]}": b"this is ( no code at all\n"}
    assert language.lint(files, files) == ()


def canaries(language: Language, files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    made: tuple[Canary, ...] = registry.load(language.canaries).canaries(files)
    return made


def test_every_demo_task_can_have_a_canary_that_is_a_copy_of_a_test(language: Language, benchmark: Exercism) -> None:
    for task in tasks_of(benchmark, language):
        files = benchmark.answer(task.instance_id).check.files
        found = canaries(language, files)
        assert found[0].strong
        assert all(0 <= place <= len(files[canary.path]) for canary in found for place in canary.places)


def test_a_test_file_that_is_none_has_no_strong_canary(language: Language, benchmark: Exercism) -> None:
    files = benchmark.answer(tasks_of(benchmark, language)[0].instance_id).check.files
    junk = dict.fromkeys(files, b"this is ( no code at all \xff\x00\n")
    assert not any(canary.strong for canary in canaries(language, junk))


@pytest.mark.real
@pytest.mark.parametrize("which", ["visible", "hidden"])
def test_the_reference_passes_every_test_in_the_file_and_the_stub_does_not(
    which: str, language: Language, benchmark: Exercism, sandbox: Sandbox
) -> None:
    # The last: those that ship with tests switched off are there.
    task = tasks_of(benchmark, language)[-1]
    answer = benchmark.answer(task.instance_id)
    check = answer.check if which == "hidden" else benchmark.visible(task.instance_id)
    gold = run_check(task, answer.patch, check, sandbox)
    assert gold.outcome is Outcome.RESOLVED, gold.output
    assert gold.lint == ()
    assert set(gold.tests.values()) == {Status.PASSED}
    assert sum("/" not in test.rpartition("::")[2] for test in gold.tests) == written(language, check.files)
    stub = run_check(task, "", replace(check, expected=gold.tests), sandbox, untouched=True)
    assert stub.outcome is Outcome.TESTS_FAILED


def written(language: Language, files: Mapping[str, bytes]) -> int:
    """How many tests a reader would count."""
    glob, test = A_TEST[language.name]
    return sum(len(re.findall(test, text.decode())) for path, text in files.items() if matches(path, [glob]))


@pytest.mark.real
def test_code_that_is_none_is_a_failed_build_with_a_reason(
    language: Language, benchmark: Exercism, sandbox: Sandbox
) -> None:
    task = tasks_of(benchmark, language)[0]
    base = task.tree.files()
    patch = diff(base, {**base, task.editable[0]: b"this is ( no code at all\n"})
    for check in (benchmark.visible(task.instance_id), benchmark.answer(task.instance_id).check):
        verdict = run_check(task, patch, check, sandbox)
        assert verdict.outcome is Outcome.BUILD_FAILED
        assert bool(verdict.lint) is check.lint
        assert verdict.exit_code
        assert ":" in verdict.reason, verdict.reason
