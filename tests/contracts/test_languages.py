"""What every language keeps to, run over every part in `retrial/languages/` on every sandbox."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import run_check
from retrial.protocols import Language, Sandbox
from retrial.types import Outcome, Task


@pytest.fixture(params=registry.names("languages"))
def language(request: pytest.FixtureRequest) -> Language:
    part: Language = registry.module("languages", request.param).make()
    return part


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2)


def first_task(benchmark: Exercism, language: Language) -> Task:
    return next(task for task in benchmark.tasks() if task.language == language.name)


def test_its_data_is_whole(language: Language) -> None:
    assert re.fullmatch(r"\d+(\.\d+)*", language.minimum)
    assert all(suffix.startswith(".") for suffix in language.suffixes)
    assert language.tests
    assert language.reader in registry.names("readers")
    assert language.environment.language == language.name


def test_the_same_text_has_no_new_errors(language: Language) -> None:
    files = {f"a{language.suffixes[0]}": b"this is ( no code at all\n"}
    assert language.lint(files, files) == ()


def test_text_that_is_no_code_is_a_new_error(language: Language) -> None:
    path = f"a{language.suffixes[0]}"
    assert language.lint({path: b""}, {path: b"this is ( no code at all\n"})


@pytest.mark.real
@pytest.mark.parametrize("which", ["visible", "hidden"])
def test_the_reference_passes_and_the_stub_fails(
    which: str, language: Language, benchmark: Exercism, sandbox: Sandbox
) -> None:
    task = first_task(benchmark, language)
    answer = benchmark.answer(task.instance_id)
    check = answer.check if which == "hidden" else benchmark.visible(task.instance_id)
    gold = run_check(task, answer.patch, check, sandbox)
    assert gold.outcome is Outcome.RESOLVED, gold.output
    assert gold.tests
    assert gold.lint == ()
    stub = run_check(task, "", replace(check, expected=gold.tests), sandbox, untouched=True)
    assert stub.outcome is Outcome.TESTS_FAILED


@pytest.mark.real
def test_code_that_cannot_be_loaded_is_a_failed_build(language: Language, benchmark: Exercism, bwrap: Sandbox) -> None:
    from retrial.patches import diff

    task = first_task(benchmark, language)
    base = task.tree.files()
    patch = diff(base, {**base, task.editable[0]: b"this is ( no code at all\n"})
    verdict = run_check(task, patch, benchmark.visible(task.instance_id), bwrap)
    assert verdict.outcome is Outcome.BUILD_FAILED
    assert verdict.lint
