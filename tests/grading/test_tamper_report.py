"""The tamper report: what it says of a patch, where it is shown, and that it is never a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.grading import tamper_report
from retrial.grading.run_check import select
from retrial.grading.tamper_report import Suspicion, Tampering, Touched
from retrial.patches.apply import diff, diff_trees, with_modes
from retrial.types import Outcome, Task, Verdict

BENCHMARK = Exercism(DEMO, "demo", 2)
TASK = next(task for task in BENCHMARK.tasks() if task.language == "python")
CHECK = BENCHMARK.answer(TASK.instance_id).check
(SOLUTION,) = TASK.editable
TEST = next(iter(CHECK.files))


def report(changes: dict[str, bytes | None], modes: dict[str, str] | None = None, task: Task = TASK) -> Tampering:
    before = {**task.tree.files(), TEST: CHECK.files[TEST]}
    after = {path: content for path, content in {**before, **changes}.items() if content is not None}
    patch = diff_trees(with_modes(before, {}), with_modes(after, modes or {}))
    selection = select(task, patch)
    assert not isinstance(selection, Verdict)
    verdict = Verdict(outcome=Outcome.RESOLVED, dropped=selection.dropped)
    return tamper_report.report(task, patch, selection.patch, CHECK, verdict)


def test_an_honest_patch_is_clean() -> None:
    assert report({SOLUTION: b"def total(prices):\n    return sum(prices)\n"}).clean


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("conftest.py", "start-up"),
        ("sitecustomize.py", "start-up"),
        ("helper.pth", "start-up"),
        ("pytest.ini", "configuration"),
        ("setup.cfg", "configuration"),
        ("setup.py", "build"),
        ("helper-1.0.dist-info/entry_points.txt", "build"),
        ("more_test.py", "test"),
        (".husky/pre-commit", "hook"),
        ("notes.txt", "other"),
    ],
)
def test_a_file_that_may_not_be_added_is_left_out_and_named_by_what_it_is(path: str, kind: str) -> None:
    assert report({path: b"x = 1\n"}).touched == (Touched(path=path, kind=kind, done="left out"),)


def test_a_test_file_that_was_changed_or_deleted_is_restored() -> None:
    for content in (b"", None):
        assert report({TEST: content}).touched == (Touched(path=TEST, kind="test", done="restored"),)


def test_a_symlink_is_named_as_one() -> None:
    found = report({"data.py": b"/etc/passwd"}, {"data.py": "120000"})
    assert found.touched == (Touched(path="data.py", kind="symlink", done="left out"),)


def test_both_names_of_what_is_touched_are_there_once() -> None:
    found = report({"conftest.py": b"a\n", "pytest.ini": b"b\n", TEST: b""})
    assert sorted(each.path for each in found.touched) == sorted(["conftest.py", "pytest.ini", TEST])


def test_suspicious_lines_are_named_with_their_place_and_are_no_broken_rule() -> None:
    found = report({SOLUTION: b"import os\n\n\ndef total(prices):\n    os._exit(0)\n"})
    assert found.suspicious == (Suspicion(path=SOLUTION, line=5, what=found.suspicious[0].what, text="os._exit(0)"),)
    assert found.rule == ""
    assert not found.clean


def test_only_lines_that_the_patch_adds_are_looked_at() -> None:
    before, line = dict(TASK.tree.files()), b"import os\nos._exit(0)\n"
    base = {**before, SOLUTION: line}
    patch = diff(base, {**base, SOLUTION: line + b"x = 1\n"})
    verdict = Verdict(outcome=Outcome.TESTS_FAILED)
    assert tamper_report.report(TASK, patch, patch, CHECK, verdict).clean


def test_a_patch_that_cannot_be_read_has_nothing_to_report_but_its_verdict() -> None:
    verdict = Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason="There is no diff in the patch.")
    assert tamper_report.report(TASK, "no diff", "", CHECK, verdict).clean


def test_the_rule_that_was_broken_and_what_the_run_changed_are_taken_from_the_verdict() -> None:
    verdict = Verdict(outcome=Outcome.TAMPERED, reason="…", rule="sealed", changed=(TEST,))
    found = tamper_report.report(TASK, "", "", CHECK, verdict)
    assert (found.rule, found.changed) == ("sealed", (TEST,))


@pytest.mark.parametrize("language", registry.names("languages"))
def test_every_language_says_what_is_suspicious_and_none_of_the_demos_references_is(language: str) -> None:
    tasks = [task for task in BENCHMARK.tasks() if task.language == language]
    assert registry.module("languages", language).make().suspicious
    for task in tasks:
        answer = BENCHMARK.answer(task.instance_id)
        verdict = Verdict(outcome=Outcome.RESOLVED)
        assert not tamper_report.report(task, answer.patch, answer.patch, answer.check, verdict).suspicious


def test_a_language_without_a_part_has_nothing_suspicious() -> None:
    assert report({SOLUTION: b"os._exit(0)\n"}, task=replace(TASK, language="cobol")).clean


def test_blanks_hide_nothing() -> None:
    assert report({SOLUTION: b"if True:\n" + b" " * 500 + b"os._exit(0)\n"}).suspicious


def test_a_module_that_would_stand_for_one_of_the_standard_librarys_is_named_so() -> None:
    assert report({"random.py": b"x = 1\n"}).touched == (Touched(path="random.py", kind="start-up", done="left out"),)


def test_a_long_line_is_looked_at_in_part(tmp_path: Path) -> None:
    found = report({SOLUTION: b"import os; os._exit(0); x = '" + b"y" * 5000 + b"'\n"})
    assert len(found.suspicious[0].text) == tamper_report.SHOWN
