"""Eval scripts of SWE-bench: cut after the test command, kept from the network, or with other tests in them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from retrial.benchmarks.swebench import eval_script
from retrial.benchmarks.swebench.container_script import INSERT_TESTS_MARKER, JOB, SCRIPT, with_tests
from retrial.benchmarks.swebench.official_grader import END, START
from tests.support.image_task import BASE_COMMIT, EVAL_SCRIPT, TEST_PATCH

TEST_FILES = ("tests/test_calc.py",)


def visible(*arguments: str, script: str = EVAL_SCRIPT) -> str:
    return eval_script.visible(script, arguments, TEST_FILES, network=False, lean=True)


def test_it_ends_with_the_status_of_the_test_command() -> None:
    script = eval_script.hidden(EVAL_SCRIPT, network=False, lean=False)
    command, status, marker, said, end, closing = script.rstrip("\n").split("\n")[-6:]
    assert command == "python3 -m pytest -rA tests/test_calc.py"
    assert (status, end, closing) == ("retrial_status=$?", "exit $retrial_status", "}")
    assert ">>>>> End Test Output" in marker and said == 'echo ">>>>> Test Exit Code: $retrial_status"'
    assert script.count(f"git checkout {BASE_COMMIT}") == 1


def test_an_editable_install_is_left_out_where_only_python_files_changed() -> None:
    assert "pip install" not in eval_script.hidden(EVAL_SCRIPT, network=False, lean=True)


def test_an_install_without_network_fetches_nothing() -> None:
    script = eval_script.hidden(EVAL_SCRIPT, network=False, lean=False)
    assert "pip install --no-build-isolation --no-deps -e . || printf '%s\\n' '== not installed'\n" in script
    assert "PIP_RETRIES=0" in script


def test_an_install_that_copies_is_done_whatever_changed() -> None:
    script = EVAL_SCRIPT.replace("pip install -e .", "pip install .")
    assert "pip install --no-build-isolation --no-deps ." in eval_script.hidden(script, network=False, lean=True)


def test_with_a_network_everything_is_as_the_row_has_it() -> None:
    script = eval_script.hidden(EVAL_SCRIPT, network=True, lean=True)
    before, _, _ = EVAL_SCRIPT.partition(": '>>>>> End Test Output'")
    first, *lines = before.split("\n")
    own = ("{", ': >"$RETRIAL_JOB/eval.sh"', ': >"$RETRIAL_JOB/lean.sh"', INSERT_TESTS_MARKER)
    assert [line for line in script.split("\n") if line not in own][: len(lines)] == [first, *lines[:-1]]


def test_markers_are_traced_whatever_the_row_says() -> None:
    script = EVAL_SCRIPT.replace("#!/bin/bash\nset -uxo pipefail\n", "")
    assert "\nset -uxo pipefail\ncd " in eval_script.hidden(script, network=True, lean=True)


def test_text_of_a_test_patch_is_never_taken_for_a_command() -> None:
    script = EVAL_SCRIPT.replace("EOF_471147114711\n: ", "+pip install -e .\nEOF_471147114711\n: ")
    assert "+pip install -e .\n" in eval_script.hidden(script, network=False, lean=True)


def test_binary_test_files_are_there_before_the_tests_run() -> None:
    script = eval_script.hidden(EVAL_SCRIPT, network=False, lean=True, assets="assets")
    before, _, after = script.partition('cp -R "$RETRIAL_JOB/assets/." .\n')
    assert before.rstrip().endswith("EOF_471147114711") and ">>>>> Start Test Output" in after


def test_nobody_can_read_or_change_a_script_that_runs(tmp_path: Path) -> None:
    spying = f'cat "$0"; echo "echo changed" >>"$0"\n: \'{START}\'\necho tested\n: \'{END}\'\n'
    script = tmp_path / SCRIPT
    script.write_text(eval_script.hidden(spying, network=True, lean=False))
    done = subprocess.run(
        ["bash", script], env={**os.environ, JOB: str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "tested\n>>>>> Test Exit Code: 0\n")


def test_tests_are_written_right_before_they_run(tmp_path: Path) -> None:
    (tmp_path / "a test.py").write_text("forged\n")
    script = eval_script.hidden(f": '{START}'\ncat 'a test.py'\n: '{END}'\n", network=True, lean=False)
    text = "it's $HOME `id` \\ é"
    planted = with_tests(script.encode(), {"a test.py": text.encode()})
    done = subprocess.run(
        ["bash", "-c", planted], env={**os.environ, JOB: str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == f"{text}\n>>>>> Test Exit Code: 0\n"
    # What is traced is read by people and by the official parsers.
    assert text not in done.stderr and START in done.stderr


def test_the_hidden_tests_can_be_looked_at_without_anything_being_run() -> None:
    script = eval_script.looking(EVAL_SCRIPT, TEST_FILES)
    assert "git apply -v -" in script and TEST_PATCH in script
    assert "pytest" not in script and "pip install" not in script and "git show" not in script
    assert script.endswith('cp tests/test_calc.py "$RETRIAL_REPORTS/0" || exit 1\nexit 0\n')


def test_visible_tests_have_nothing_of_the_hidden_ones() -> None:
    script = visible("tests/test_other.py", "tests/a b.py")
    assert "python3 -m pytest -rA tests/test_other.py 'tests/a b.py'\n" in script
    assert "test_calc" not in script and "git apply" not in script and "git checkout" not in script
    assert not any(line in script for line in TEST_PATCH.splitlines() if len(line) > 5)


def test_no_arguments_are_the_whole_suite() -> None:
    assert "\npython3 -m pytest -rA\n" in visible()


def test_djangos_runner_gets_its_own_names() -> None:
    script = EVAL_SCRIPT.replace(
        "python3 -m pytest -rA tests/test_calc.py", "./tests/runtests.py --parallel 1 app.test_calc"
    )
    files = ("tests/app/test_calc.py",)
    named = eval_script.named_as(script, files)
    assert named("tests/app/tests.py") == "app.tests"
    assert eval_script.bare_command(script, files) == "./tests/runtests.py --parallel 1 {tests}"
    assert eval_script.named_as(EVAL_SCRIPT, TEST_FILES)("tests/a.py") == "tests/a.py"


def test_other_tests_stand_where_the_hidden_ones_stood() -> None:
    script = EVAL_SCRIPT.replace("-rA tests/test_calc.py", "-rA tests/test_calc.py -p no:randomly")
    assert "\npython3 -m pytest -rA tests/a.py -p no:randomly\n" in visible("tests/a.py", script=script)


@pytest.mark.parametrize(
    "command",
    [
        "make check",
        "npm test -- --grep calc",
        "bundle exec ruby tests/test_calc.rb tests/test_calc.py -n /test_sub/",
        "npx qunit -f 'sub|add' tests/test_calc.py",
        "rspec tests/test_calc.py | jq .examples",
        "mvn test -Dtest=CalcTest tests/test_calc.py",
        "make\nprove tests/test_calc.py",
    ],
)
def test_a_command_that_may_choose_tests_by_other_means_cannot_be_given_others(command: str) -> None:
    script = EVAL_SCRIPT.replace("python3 -m pytest -rA tests/test_calc.py", command)
    assert eval_script.bare_command(script, TEST_FILES) == ""
