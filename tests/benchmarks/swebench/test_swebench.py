"""What `-b` takes for SWE-bench, and what comes of a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrial.benchmarks import open_benchmark, swebench
from retrial.benchmarks.exercism import Exercism
from retrial.benchmarks.swebench import SweBench, container_script
from retrial.benchmarks.swebench.official_grader import OfficialCheck, OfficialTests
from retrial.checks import Check
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.patches.policy import matches
from retrial.protocols import Context
from tests.support import image_task


def write_rows(folder: Path, **changes: Any) -> Path:
    path = folder / "calc.jsonl"
    path.write_text(json.dumps(image_task.row(**changes)) + "\n")
    return path


def opened(name: str | Path, **options: Any) -> SweBench:
    benchmark = open_benchmark(Context(options=HarnessOptions(**options), name=str(name)))
    assert isinstance(benchmark, SweBench)
    return benchmark


def required_of(check: Check) -> OfficialTests:
    assert isinstance(check.grader_data, OfficialCheck)
    return check.grader_data.tests


def test_a_task_is_everything_an_agent_may_know_and_nothing_else(tmp_path: Path) -> None:
    benchmark = opened(write_rows(tmp_path, hints_text="SECRET-HINT"))
    (task,) = benchmark.tasks()
    assert (task.instance_id, task.benchmark, task.language) == (image_task.INSTANCE, "calc", "python")
    assert (task.environment.tree, task.whole_repository, benchmark.default_tries) == ("/testbed", True, 3)
    known = repr(task) + repr(benchmark.provenance)
    for secret in ("SECRET-HINT", "a - b", "test_sub", "Start Test Output"):
        assert secret not in known


def test_the_answer_asks_for_the_tests_of_the_row(tmp_path: Path) -> None:
    answer = opened(write_rows(tmp_path)).answer(image_task.INSTANCE)
    assert answer.patch == image_task.GOLD
    required = required_of(answer.check)
    assert required.parser == "parse_log_pytest"
    assert required.fail_to_pass == ("tests/test_calc.py::test_sub", "tests/test_calc.py::test_sub_nothing")
    assert set(answer.check.files) == {container_script.SCRIPT, container_script.SCRIPT_WITHOUT_INSTALL}
    assert required.files == ("tests/test_calc.py",)


def test_a_check_keeps_the_digest_by_which_earlier_versions_cached_its_verdicts(tmp_path: Path) -> None:
    benchmark = opened(write_rows(tmp_path), visible_tests="all")
    visible = benchmark.visible(image_task.INSTANCE, ("calc/core.py",))
    assert isinstance(visible, Check)
    assert visible.digest == "bf954d6a76cc67a99beaa2cb70e39523cfc017cd6e790abe6326c40f71d30f79"
    assert (
        benchmark.answer(image_task.INSTANCE).check.digest
        == "37dbd7e7b6ee533057aaff0d0ad8036d52c38bbd803ff7c94e71e3953628f389"
    )


def test_only_modules_of_python_get_canaries(tmp_path: Path) -> None:
    answer = opened(write_rows(tmp_path, log_parser="parse_log_gotest")).answer(image_task.INSTANCE)
    assert required_of(answer.check).files == ()
    assert answer.check.prebuild is None


def test_no_line_of_the_hidden_tests_is_in_a_visible_check(tmp_path: Path) -> None:
    check = opened(write_rows(tmp_path), visible_tests="all").visible(image_task.INSTANCE, ("calc/core.py",))
    assert isinstance(check, Check)
    written = b"".join(check.files.values()).decode() + check.script + repr(check.grader_data)
    added = [line[1:].strip() for line in image_task.TEST_PATCH.splitlines() if line.startswith("+ ")]
    assert added and not any(line in written for line in added)
    assert "test_calc" not in written


def test_a_command_that_cannot_be_given_other_tests_has_no_visible_check(tmp_path: Path) -> None:
    script = image_task.EVAL_SCRIPT.replace("python3 -m pytest -rA tests/test_calc.py", "make check")
    benchmark = opened(write_rows(tmp_path, eval_script=script), visible_tests="all")
    why = benchmark.visible(image_task.INSTANCE, ("calc/core.py",))
    assert why == "the test command cannot be given other tests"


@pytest.mark.parametrize(
    ("path", "reserved"),
    [
        ("sympy/core/tests/test_basic.py", True),
        ("tests/utils_tests/data.json", True),
        ("testing/test_mark.py", True),
        ("astropy/conftest.py", True),
        ("setup.cfg", True),
        ("pkg/src/test/java/ATest.java", True),
        ("lib/a.test.ts", True),
        ("django/test/client.py", False),
        ("sympy/testing/pytest.py", False),
        ("sklearn/utils/_testing.py", False),
        ("src/_pytest/mark/structures.py", False),
        ("setup.py", True),
        ("calc.egg-info/entry_points.txt", True),
        ("src/calc-1.0.dist-info/entry_points.txt", True),
        ("tests/runtests.py", True),
        ("bin/test", True),
        ("calc/__pycache__/core.cpython-39.pyc", True),
        ("calc/setup_helpers.py", False),
        ("lib/latest/contest.py", False),
    ],
)
def test_tests_and_what_runs_them_are_told_from_source(path: str, reserved: bool) -> None:
    assert matches(path, swebench.RESERVED) is reserved


def test_a_folder_that_is_no_task_repository_is_left_to_exercises(tmp_path: Path) -> None:
    benchmark = open_benchmark(Context(options=HarnessOptions(), name=str(tmp_path)))
    assert isinstance(benchmark, Exercism)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"visible_tests": "some"}, "--visible-tests must be one of"), ({"image": "all"}, "--image is for exercises")],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        opened(write_rows(tmp_path), **options)


def test_an_unknown_parser_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="log parser 'parse_log_nobody'"):
        opened(write_rows(tmp_path, log_parser="parse_log_nobody")).tasks()
