"""Java: which tests are switched on, how they are run, what Maven's talk is reduced to, and what a patch may add."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Check
from retrial.errors import TreeError
from retrial.grading.judge import judge
from retrial.grading.run_check import run_check
from retrial.language import Suite
from retrial.languages import java
from retrial.languages.java import results as reader
from retrial.patches import apply, policy
from retrial.protocols import Sandbox
from retrial.types import Execution, Outcome, Status, Task
from tests.parts import ready

SOLUTION = ("src/main/java/Poker.java",)
POM = {"m": "http://maven.apache.org/POM/4.0.0"}


def unskipped(text: str) -> str:
    return java.checked({"src/test/java/ATest.java": text.encode()})["src/test/java/ATest.java"].decode()


@pytest.mark.parametrize(
    "annotation",
    [
        "@Disabled",
        '@Disabled("Remove to run test")',
        "@Disabled()",
        '@Disabled ( value = "a" )',
        '@Disabled("a) \\" (b")',
        '@Disabled("a" +\n    ")" + ("b"))',
        '@Disabled(/* why ) */ "a")',
        '@Disabled("""\n    a ) "b" \\"""\n    """)',
        "@Disabled(WHY + ')')",
        "@org.junit.jupiter.api.Disabled",
        '@org.junit.jupiter.api.Disabled("a")',
        '@ org . junit . jupiter . api . Disabled\n("a")',
    ],
)
def test_every_test_that_waits_for_its_turn_is_run(annotation: str) -> None:
    assert unskipped(f"{annotation}@Test void a() {{}}\n{annotation}\n@Test\nvoid ü() {{}}") == (
        "@Test void a() {}\n\n@Test\nvoid ü() {}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "import org.junit.jupiter.api.Disabled;",
        '@DisabledOnOs(WINDOWS) @EnabledIf("a") void a() {}',
        '// it\'s @Disabled("a")\nint a = 1; /* "@Disabled" */',
        'assertThat(a).isEqualTo("\\"@Disabled(" + \'"\' + """\n"@Disabled\n""");',
        "boolean Disabled = true;",
    ],
)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert unskipped(text) == text


def test_bytes_that_are_no_text_are_kept() -> None:
    assert java.checked({"src/test/java/A.java": b"\xff@Disabled \xfe"})["src/test/java/A.java"] == b"\xff \xfe"


def test_files_that_are_no_java_are_kept() -> None:
    assert java.checked({"src/test/resources/a.txt": b"@Disabled"})["src/test/resources/a.txt"] == b"@Disabled"


def test_a_file_that_is_cut_short_is_read_in_no_time() -> None:
    unskipped("@Disabled(" + "//a\n" * 5000 + "\\" * 5000 + '"""' + "\\" * 5000)


def test_the_project_file_is_ours_whatever_the_exercise_has() -> None:
    files = java.checked({"pom.xml": b"<project/>", "src/test/java/ATest.java": b""})
    assert files["pom.xml"] == java.POM.read_bytes()


def test_everything_in_the_project_file_has_one_version() -> None:
    project = ElementTree.parse(java.POM).getroot()
    managed = {"junit-jupiter"}
    for part in (*project.iterfind(".//m:dependency", POM), *project.iterfind(".//m:plugin", POM)):
        name, version = (part.findtext(f"m:{key}", "", POM) for key in ("artifactId", "version"))
        assert name in managed or re.fullmatch(r"[\d.]+|\$\{surefire\.version\}", version), name
    assert re.fullmatch(r"[\d.]+", project.findtext(".//m:surefire.version", "", POM))


def test_nothing_but_the_project_file_says_how_tests_are_run() -> None:
    settings = ElementTree.parse(java.POM).getroot().findall(".//m:plugin/m:configuration", POM)[-1]
    assert settings.findtext("m:failIfNoTests", "", POM) == "true"
    assert settings.findtext("m:reportsDirectory", "", POM) == "${env.RETRIAL_REPORTS}"
    assert [include.text for include in settings.iterfind("m:includes/*", POM)] == ["**/*"]


def test_a_reference_brings_classes_of_its_own() -> None:
    example = {f".meta/src/reference/java/{name}": name.encode() for name in ("Card.java", "Poker.java")}
    assert java.reference(SOLUTION, example) == {
        "src/main/java/Card.java": b"Card.java",
        "src/main/java/Poker.java": b"Poker.java",
    }


def test_a_reference_for_nothing_is_refused() -> None:
    with pytest.raises(TreeError):
        java.reference(SOLUTION, {".meta/src/reference/java/Bridge.java": b""})


def test_a_task_with_its_own_command_runs_that_with_our_settings() -> None:
    assert java.script(Suite(solution=SOLUTION, tests=(), command="mvn verify")) == java.SETTINGS + "mvn verify"


def test_only_the_visible_check_looks_at_the_solution_first() -> None:
    visible = Suite(solution=SOLUTION, tests=())
    assert "== lint" in java.script(visible)
    assert "== lint" not in java.script(replace(visible, hidden=True))


def test_the_scripts_ask_the_compiler_for_the_same_java_as_the_project_file() -> None:
    release = ElementTree.parse(java.POM).getroot().findtext(".//m:maven.compiler.release", "", POM)
    assert f"--release {release} " in java.LINT
    assert java.make().minimum == release


def test_configuration_of_distributions_is_found_by_its_links(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "deep").symlink_to("/etc/alternatives")
    (tmp_path / "conf" / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "own").symlink_to(tmp_path / "conf")
    assert java._configuration((str(tmp_path),)) == {"/etc/alternatives"}


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", languages=("java",))


@pytest.fixture
def task(benchmark: Exercism) -> Task:
    (task,) = (task for task in benchmark.tasks() if "java/parcel-lockers" in task.aliases)
    return task


@pytest.mark.parametrize("name", ["module-info.java", "package-info.java", "ParcelLockersTest.java", "MoreTests.java"])
def test_a_file_that_a_runner_would_pick_up_by_its_name_does_not_count(name: str, task: Task) -> None:
    assert not policy.writable(task, f"src/main/java/{name}", task.tree.files())


def test_a_new_class_beside_the_solution_counts(task: Task) -> None:
    base = task.tree.files()
    assert policy.writable(task, "src/main/java/Helper.java", base)
    for path in ("src/test/java/Helper.java", "src/main/resources/a.java", "Helper.java", "pom.xml"):
        assert not policy.writable(task, path, base)


FAILED = """\
\x1b[0m[INFO] Scanning for projects...
[INFO] --- maven-compiler-plugin:3.14.1:compile (default-compile) @ exercise ---
[INFO] -------------------------------------------------------
[INFO]  T E S T S
[INFO] -------------------------------------------------------
[INFO] Running PokerTest
a line of the solution
[ERROR] Tests run: 2, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.741 s <<< FAILURE! -- in PokerTest
[ERROR] PokerTest.tie -- Time elapsed: 0.017 s <<< ERROR!
java.lang.IllegalStateException: no
\tat Poker.<init>(Poker.java:4)
\tat PokerTest.tie(PokerTest.java:34)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)

[INFO] Results:
[INFO]
[ERROR] Errors:
[ERROR]   PokerTest.tie:34 » IllegalState no
[INFO]
[ERROR] Tests run: 2, Failures: 0, Errors: 1, Skipped: 0
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal surefire:test on project exercise: There are test failures.
[ERROR]
[ERROR] See /tmp/reports for the individual test results.
[ERROR] -> [Help 1]
"""

READ = """\
== test
a line of the solution
[ERROR] Tests run: 2, Failures: 0, Errors: 1, Skipped: 0 <<< FAILURE! -- in PokerTest
[ERROR] PokerTest.tie <<< ERROR!
java.lang.IllegalStateException: no
\tat Poker.<init>(Poker.java:4)
\tat PokerTest.tie(PokerTest.java:34)

Tests run: 2, Failures: 0, Errors: 1, Skipped: 0
[ERROR] Failed to execute goal surefire:test on project exercise: There are test failures.
"""

NOT_COMPILED = """\
== build
[ERROR] COMPILATION ERROR :
[ERROR] /tmp/job/poker/src/main/java/Poker.java:[1,54] cannot find symbol
  symbol:   variable c
[INFO] 1 error
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal compiler:compile on project exercise: Compilation failure
[ERROR] /tmp/job/poker/src/main/java/Poker.java:[1,54] cannot find symbol
[ERROR]   symbol:   variable c
[ERROR] -> [Help 1]
"""

REPORT = """\
<testsuite name="PokerTest">
  <testcase name="tie" classname="PokerTest"><error type="java.lang.IllegalStateException">no</error></testcase>
  <testcase name="pair(int)[1]" classname="PokerTest$Inner"/>
</testsuite>
"""


def said(stdout: str, **reports: str) -> Execution:
    files = {f"TEST-{name}.xml": text.encode() for name, text in reports.items()}
    return Execution(exit_code=1, stdout=stdout, stderr="", seconds=0.1, reports=files)


def test_an_exception_that_leaves_a_test_is_a_failure_of_that_test() -> None:
    assert reader.read(said("", PokerTest=REPORT)) == {
        "PokerTest::tie": Status.FAILED,
        "PokerTest$Inner::pair(int)[1]": Status.PASSED,
    }


def test_people_read_each_failure_once_and_nothing_about_maven() -> None:
    assert reader.text(FAILED) == READ


def judged(stdout: str, **changes: bool) -> tuple[Outcome, str]:
    language = java.make()
    check = Check(
        script="",
        files={},
        result_parser=language.result_parser,
        timeout=180.0,
        error_line_pattern=language.error_line_pattern,
    )
    verdict = judge(check, replace(said(stdout), **changes))  # type: ignore[arg-type]
    return verdict.outcome, verdict.reason


def test_what_cannot_be_compiled_is_a_failed_build_that_says_why() -> None:
    outcome, reason = judged(NOT_COMPILED)
    assert outcome is Outcome.BUILD_FAILED
    assert reason.startswith("the build failed with status 1: ")
    assert reason.count("cannot find symbol") == 1


def test_what_does_not_end_is_the_build_or_the_tests() -> None:
    assert "the build did not" in judged("== build\n[INFO] Scanning\n", timed_out=True)[1]
    assert "the tests did not" in judged("== build\n[INFO]  T E S T S\n[INFO] Running ATest\n", timed_out=True)[1]


@pytest.fixture
def sandbox(task: Task) -> Sandbox:
    sandbox = ready("bwrap")
    sandbox.prepare(task.environment, lambda text: None)
    return sandbox


EVERY_KIND = b"""
import static org.assertj.core.api.Assertions.assertThat;
import java.util.stream.Stream;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

abstract class Base { @Disabled @Test void inherited() {} }

class Checks extends Base {
    @Test void twice() {}
    @Test void twice(TestInfo info) {}
    @org.junit.jupiter.api.Disabled("a) \\" (b") @Test void waiting() {}
    @ParameterizedTest(name = "same") @ValueSource(ints = {1, 2}) void given(int number) {}
    @TestFactory
    Stream<DynamicTest> made() { return Stream.of("x", "x").map(name -> DynamicTest.dynamicTest(name, () -> {})); }
    @Nested @Disabled("why") class Inner { @Test void twice() {} }
    static class Loose { @Test void twice() {} }
}
"""


@pytest.mark.real
def test_every_kind_of_test_is_found_once_under_a_name_of_its_own(
    benchmark: Exercism, task: Task, sandbox: Sandbox
) -> None:
    answer = benchmark.answer(task.instance_id)
    check = replace(answer.check, files=java.checked({"src/test/java/Odd.java": EVERY_KIND}))
    verdict = run_check(task, answer.patch, check, sandbox)
    assert verdict.outcome is Outcome.RESOLVED, verdict.output
    assert sorted(verdict.tests) == [
        *("Checks$Inner::twice", "Checks$Loose::twice", "Checks::given(int)[1]", "Checks::given(int)[2]"),
        *("Checks::inherited", "Checks::made()[1]", "Checks::made()[2]"),
        *("Checks::twice", "Checks::twice(TestInfo)", "Checks::waiting"),
    ]


@pytest.mark.real
@pytest.mark.parametrize(
    ("added", "outcome", "why"),
    [
        ("static { System.exit(0); }", Outcome.BUILD_FAILED, "forked VM terminated"),
        ("static { if (true) throw new IllegalStateException(); }", Outcome.TESTS_FAILED, "did not pass"),
        ("int broken() { return missing; }", Outcome.BUILD_FAILED, "cannot find symbol"),
    ],
)
def test_a_solution_that_cannot_be_tested_is_no_pass_and_says_why(
    added: str, outcome: Outcome, why: str, benchmark: Exercism, task: Task, sandbox: Sandbox
) -> None:
    base, answer = task.tree.files(), benchmark.answer(task.instance_id)
    gold = apply.patched(base, answer.patch).files
    (source,) = task.editable
    head, _, tail = gold[source].decode().rpartition("}")
    wrong = {**gold, source: f"{head}{added}}}{tail}".encode()}
    verdict = run_check(task, apply.diff(base, wrong), answer.check, sandbox)
    assert (verdict.outcome, why in verdict.reason) == (outcome, True), verdict.reason


@pytest.mark.real
def test_a_solution_cannot_stand_in_for_the_libraries_of_its_tests(
    benchmark: Exercism, task: Task, sandbox: Sandbox
) -> None:
    fake = b"package org.apache.maven.surefire.junitplatform; public class JUnitPlatformProvider {}\n"
    base, answer = task.tree.files(), benchmark.answer(task.instance_id)
    added = {**base, "src/main/java/JUnitPlatformProvider.java": fake}
    verdict = run_check(task, apply.diff(base, added), answer.check, sandbox)
    assert verdict.outcome is Outcome.TESTS_FAILED, verdict.output
