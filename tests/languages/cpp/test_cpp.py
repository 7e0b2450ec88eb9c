"""C++: what stands for what, what is compiled once, and what its runner leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.errors import TreeError
from retrial.grading.run_check import run_check
from retrial.language import Suite
from retrial.languages import cpp
from retrial.languages.cpp import results as reader
from retrial.patches import apply, policy
from retrial.protocols import Sandbox
from retrial.sandboxes import bwrap
from retrial.sandboxes.prepare import prepare_all, unsupported_tasks
from retrial.types import Execution, Outcome, Status, Task
from tests.parts import ready

SOLUTION = ("word_count.cpp", "word_count.h")

# As Catch writes it.
REPORT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="x" errors="1" failures="1" tests="3">
    <testcase classname="x.global" name="good" time="0.1" status="run"/>
    <testcase classname="x.global" name="less &lt; more" time="0.1" status="run">
      <failure message="f(1) == &quot;a > b&quot;" type="REQUIRE">
FAILED:
  REQUIRE( f(1) == "a > b" )
with expansion:
  "&amp;lt;" == "a > b"
at HERE/x_test.cpp:8
      </failure>
      <system-out>
seen
      </system-out>
    </testcase>
    <testcase classname="x.global" name="thrown" time="0.1" status="run">
      <error type="TEST_CASE">
FAILED:
no
at HERE/x_test.cpp:9
      </error>
    </testcase>
    <system-out>
seen
    </system-out>
  </testsuite>
</testsuites>
"""
READ = """\
--- less < more
FAILED:
  REQUIRE( f(1) == "a > b" )
with expansion:
  "&lt;" == "a > b"
at x_test.cpp:8
seen
--- thrown
FAILED:
no
at x_test.cpp:9
"""


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", languages=("cpp",))


@pytest.fixture
def task(benchmark: Exercism) -> Task:
    return benchmark.tasks()[-1]


@pytest.fixture
def sandbox(home: Path) -> Sandbox:
    return ready("bwrap", cpp.make().environment)


def test_a_reference_stands_for_the_file_with_its_suffix() -> None:
    example = {".meta/example.h": b"header", ".meta/example.cpp": b"source"}
    assert cpp.reference(SOLUTION, example) == {"word_count.h": b"header", "word_count.cpp": b"source"}


def test_a_reference_that_is_all_header_leaves_the_source_as_it_was() -> None:
    assert cpp.reference(SOLUTION, {".meta/example.h": b"header"}) == {"word_count.h": b"header"}


@pytest.mark.parametrize("names", [(), ("a.h", "b.h"), ("a.hpp",)])
def test_a_reference_that_could_stand_for_anything_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(TreeError, match="cannot stand for"):
        cpp.reference(SOLUTION, dict.fromkeys(names, b""))


def test_the_framework_is_no_source_of_the_task(benchmark: Exercism, task: Task) -> None:
    framework = {"test/catch.hpp", "test/tests-main.cpp"}
    assert framework <= set(benchmark.visible(task.instance_id).files)
    assert not framework & set(task.tree.files())
    assert "CMakeLists.txt" in task.tree.files()


@pytest.mark.parametrize("name", ["more_test.cpp", "test/catch.hpp", "test/more.h", "catch.hpp", "CMakeLists.txt"])
def test_tests_and_build_files_cannot_be_added(name: str, task: Task) -> None:
    assert not policy.writable(task, name, task.tree.files())


def test_a_header_can_be_added(task: Task) -> None:
    assert policy.writable(task, "more.h", task.tree.files())


def test_the_framework_is_compiled_once_for_all_exercises_that_have_the_same() -> None:
    framework = {cpp.MAIN: b"#include", "test/catch.hpp": b"catch"}
    one, other = (cpp.prebuild({**framework, f"{name}_test.cpp": name.encode()}) for name in "ab")
    assert one is not None
    assert one == other
    assert one.files == framework
    assert cpp.prebuild({**framework, "test/catch.hpp": b"newer"}) != one


def test_without_a_main_of_its_own_nothing_is_compiled_before() -> None:
    assert cpp.prebuild({"a_test.cpp": b"", "tests-main.cpp": b""}) is None


def test_a_task_with_its_own_command_runs_that_alone() -> None:
    assert cpp.script(Suite(solution=SOLUTION, tests=(), command="make check")) == "make check"


def test_only_the_visible_check_looks_at_the_solution_first() -> None:
    visible = Suite(solution=SOLUTION, tests=())
    assert "== lint" in cpp.script(visible)
    assert "== lint" not in cpp.script(replace(visible, hidden=True))


def test_an_exception_that_leaves_a_test_is_a_failure_of_that_test() -> None:
    execution = Execution(exit_code=2, stdout="", stderr="", seconds=0.1, reports={"junit.xml": REPORT.encode()})
    assert reader.read(execution) == {
        "x.global::good": Status.PASSED,
        "x.global::less < more": Status.FAILED,
        "x.global::thrown": Status.FAILED,
    }


@pytest.mark.parametrize(("status", "printed"), [(2, READ), (0, "")])
def test_failures_can_be_read_by_people(tmp_path: Path, status: int, printed: str) -> None:
    (tmp_path / "report").write_text(REPORT.replace("HERE", str(tmp_path)))
    program = tmp_path / "x"
    program.write_text(f'#!/bin/sh\ncp report "$4"\nexit {status}\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", f"here=$PWD name=x\n{cpp.RUN}"],
        cwd=tmp_path,
        env={**os.environ, "RETRIAL_REPORTS": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, printed, "")


@pytest.mark.real
@pytest.mark.parametrize(("options", "compiled"), [("-O2 -g", False), ("-D_GLIBCXX_DEBUG", True)])
def test_what_was_compiled_before_is_used_where_it_is_the_same_code(
    options: str, compiled: bool, benchmark: Exercism, task: Task, sandbox: Sandbox
) -> None:
    answer = benchmark.answer(task.instance_id)
    cmake = task.tree.files()["CMakeLists.txt"].replace(b"-Werror", f"-Werror {options}".encode())
    check = replace(answer.check, files={**answer.check.files, "CMakeLists.txt": cmake})
    verdict = run_check(task, answer.patch, check, sandbox)
    assert verdict.outcome is Outcome.RESOLVED, verdict.output
    assert ("tests-main.cpp.o" in verdict.stdout) is compiled


@pytest.mark.real
def test_without_what_was_compiled_before_the_verdict_is_the_same(
    benchmark: Exercism, task: Task, sandbox: Sandbox
) -> None:
    answer = benchmark.answer(task.instance_id)
    warm, cold = (
        run_check(task, answer.patch, check, sandbox) for check in (answer.check, replace(answer.check, prebuild=None))
    )
    assert ("tests-main.cpp.o" in warm.stdout, "tests-main.cpp.o" in cold.stdout) == (False, True)
    assert (warm.outcome, warm.tests) == (cold.outcome, cold.tests)


@pytest.mark.real
def test_a_program_that_ends_before_its_tests_is_no_pass(benchmark: Exercism, task: Task, sandbox: Sandbox) -> None:
    base = task.tree.files()
    ending = b"\n#include <unistd.h>\nstatic const int gone = (_exit(0), 0);\nint where() { return gone; }\n"
    answer = benchmark.answer(task.instance_id)
    gold = apply.patched(base, answer.patch).files
    (source,) = (path for path in task.editable if path.endswith(".cpp"))
    verdict = run_check(task, apply.diff(base, {**gold, source: gold[source] + ending}), answer.check, sandbox)
    assert verdict.outcome is Outcome.BUILD_FAILED
    assert "no report" in verdict.reason


@pytest.mark.real
def test_without_boost_only_tasks_that_need_it_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    track = shutil.copytree(DEMO / "cpp", tmp_path / "cpp")
    build = track / "exercises/practice/plain-table/CMakeLists.txt"
    build.write_text(build.read_text() + "\nfind_package(Boost 1.58 REQUIRED COMPONENTS date_time)\n")
    tasks = Exercism(tmp_path, "here").tasks()
    sandbox = ready("bwrap", tasks[1].environment)
    assert unsupported_tasks(tasks, sandbox) == {}
    # As on a host that does not have it; nothing else of the toolchain is touched.
    monkeypatch.setitem(cpp.TOOLS, "Boost", "false")
    bwrap._toolchain.cache_clear()
    try:
        assert unsupported_tasks(tasks, sandbox) == {"aider_cpp_plain_table": cpp.NO_BOOST}
        (left,) = (task.environment for task in tasks if not task.environment.needs)
        versions = prepare_all(sandbox, [left], tmp_path / "cache", print).versions[left]
        assert [line.partition(":")[0] for line in versions] == ["g++", "cmake", "make"]
    finally:
        bwrap._toolchain.cache_clear()
