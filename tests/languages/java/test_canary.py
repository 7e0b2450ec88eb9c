"""Java's canaries: which values tests expect, and what surefire says of a test that had to fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Canary, Check
from retrial.grading import reference_runs
from retrial.grading.canaries import plant
from retrial.grading.run_check import run_check
from retrial.grading.verdict_cache import Verdicts
from retrial.languages import java
from retrial.languages.canaries.candidates import NAME
from retrial.languages.java import results as reader
from retrial.languages.java.canary import canaries
from retrial.patches import apply
from retrial.types import Execution, Outcome
from tests.parts import ready

PATH = "src/test/java/ATest.java"
IMPORTS = "import static org.assertj.core.api.Assertions.assertThat;\nimport org.junit.jupiter.api.Test;\n\n"


def of(text: str) -> list[Canary]:
    return [canary for canary in canaries({PATH: text.encode()}) if canary.strong]


def changed(statements: str, members: str = "") -> list[str]:
    """What is changed in copies of a test of these statements, in a class that has these members too."""
    found = of(f"{IMPORTS}class ATest {{\n    {members}\n    @Test\n    void small() {{\n{statements}\n    }}\n}}\n")
    return [canary.of.removeprefix("small: ") for canary in found]


@pytest.mark.parametrize(
    ("statements", "first"),
    [
        ("assertEquals(3, Add.add(1, 2));", "3 is 2"),
        ("Assertions.assertEquals(-3L, Add.add(-5, 2));", "3L is 2L"),
        ('assertThat(a.greet("Ada")).as("why").isEqualTo("Hi, Ada");', '"Hi, Ada" is "Hi, Adb"'),
        ("assertThat(a.all(5)).containsExactly('a', 'b');", "'a' is 'b'"),
        ("assertThat(a.all(5)).containsOnly(entry('a', 1));", "'a' is 'b'"),
        ("assertThat(a.cost(7)).isCloseTo(8.50, within(0.01));", "8.50 is 7.50"),
        ("assertThat(a.code()).isEqualTo(0x40L);", "0x40L is 0x41L"),
        ("List<Integer> sums = List.of(7, 9); assertThat(a.sums(2)).isEqualTo(sums);", "7 is 6"),
        ('String expected = new Json().put("a", 1).text(); check(a.json(5), expected);', '"a" is "b"'),
        ("Map<Integer, Integer> all = new HashMap<>(); all.put(4, 5); assertThat(a.f(1)).isEqualTo(all);", "4 is 3"),
        ("assertThat(a.is(3)).isTrue();", "isTrue() is isEqualTo(false)"),
        ("assertThat(a.is(3)).isFalse();", "isFalse() is isEqualTo(true)"),
        ("assertTrue(a.is(3));", "assertTrue( is org.junit.jupiter.api.Assertions.assertEquals(false, "),
        ('assertThatThrownBy(() -> a.f(0)).hasMessage("not 0");', '"not 0" is "not 1"'),
    ],
)
def test_what_is_expected_is_changed_before_anything_else(statements: str, first: str) -> None:
    assert changed(statements)[0] == first


@pytest.mark.parametrize(
    "statements",
    [
        "assertThat(a.f(1)).isNotEqualTo(3);",
        "assertThat(a.f(1)).isNull();",
        "assertThatThrownBy(() -> a.f(1)).isInstanceOf(IllegalStateException.class);",
        'assertThat(a.f(1)).as("one 1").withFailMessage("two 2").isEqualTo(other);',
        "assertThat(a.get(1)).isEqualTo(others.get(0));",
        "assertThat(a.f(1)).isEqualTo('\\n');",
        "a.contains(1);",
        "assertThat(a.equals(b)).isTrue();",
        "assertTrue(a == b);",
        "assertTrue(() -> a.is(1));",
    ],
)
def test_what_is_put_in_and_what_is_said_are_left_alone(statements: str) -> None:
    assert changed(statements) == []


def test_a_constant_becomes_another_of_its_kind() -> None:
    statements = "assertThat(a.f(1)).isEqualTo(State.WIN); assertThat(a.f(2)).isEqualTo(State.DRAW);"
    assert changed(statements) == ["State.WIN is State.DRAW", "State.DRAW is State.WIN"]
    assert changed("assertThat(a.f(1)).isEqualTo(State.WIN);") == []


HELPER = "void check(Node node, int id) { assertThat(node.id()).isEqualTo(id); }"


@pytest.mark.parametrize("unsure", ["check(tree, 7);", "assertThat(a.all()).contains(7);"])
def test_what_other_solutions_may_see_otherwise_is_changed_only_where_there_is_nothing_else(unsure: str) -> None:
    assert changed(unsure, HELPER) == ["7 is 6"]
    assert changed(f"{unsure} assertThat(tree.size()).isEqualTo(5);", HELPER) == ["5 is 4"]


def test_tests_that_loop_are_copied_only_where_there_are_no_others() -> None:
    looping = "@Test\n    void looping() { for (int i = 0; i < 3; i++) assertThat(a.f(i)).isEqualTo(4); }\n"
    small = "@Test\n    void small() { assertThat(a.f(1)).isEqualTo(3); }"
    assert [canary.of for canary in of(f"class ATest {{\n    {looping}}}\n")] == ["looping: 4 is 3"]
    assert [canary.of for canary in of(f"class ATest {{\n    {looping}\n    {small}\n}}\n")] == ["small: 3 is 2"]


def test_rows_of_a_test_with_parameters_are_changed_where_it_has_no_values_of_its_own() -> None:
    rows = '@ParameterizedTest @CsvSource({"1, 2", "3, 4"}) void rows(int a, int b) { assertEquals(b, f(a)); }'
    assert [canary.of for canary in of(f"class ATest {{ {rows} }}")] == [
        'rows: "1, 2" is "1, 1"',
        'rows: "3, 4" is "3, 3"',
    ]


NESTED = f"""{IMPORTS}class ATest {{
    @Test
    void testOuter() {{
        assertThat(a.f(1)).isEqualTo(3);
    }}

    @Nested class Inner {{
        @Test
        public void testInner() throws Exception {{
            assertThat(a.f(2)).isEqualTo(5);
        }}

        @Test void testLast() {{ assertThat(a.g()).isEqualTo("x"); }}
    }}
}}
"""


def test_a_copy_stays_in_its_class() -> None:
    found = {canary.of: canary for canary in of(NESTED)}
    assert list(found) == ["testInner: 5 is 4", 'testLast: "x" is "y"', "testOuter: 3 is 2"]
    outer, inner = found["testOuter: 3 is 2"], found["testInner: 5 is 4"]
    assert [NESTED[place:].split("{")[0] for place in outer.places] == ["    @Test\n    void testOuter() "]
    assert {NESTED[place:].split("(")[0].split()[-1] for place in inner.places} == {"testInner", "testLast"}
    assert inner.text.startswith("        @Test\n")
    assert f"public void {NAME}() throws Exception" in inner.text
    assert {canary.prefix for canary in found.values()} == {"test"}


def test_a_test_that_shares_its_line_is_copied_without_the_rest() -> None:
    source = "class ATest { @Test void small() { assertEquals(3, f(1)); } }"
    (canary,) = of(source)
    planted = plant(Check(script="", files={PATH: source.encode()}, result_parser="languages.java.results"), [canary])
    text = planted.files[PATH].decode()
    assert text.startswith("class ATest { @Test void ")
    assert text.endswith("@Test void small() { assertEquals(3, f(1)); } }")


@pytest.mark.parametrize(
    ("imports", "failure"),
    [
        (IMPORTS, "assertThat(1).isEqualTo(2);"),
        ("import org.junit.jupiter.api.*;", "org.junit.jupiter.api.Assertions.assertEquals(1, 2);"),
    ],
)
def test_where_nothing_can_be_changed_one_fails_whatever_happens(imports: str, failure: str) -> None:
    (canary,) = canaries({PATH: f"{imports}\nclass ATest {{ @Test void a() {{ run(); }} }}".encode()})
    assert not canary.strong
    assert failure in canary.text


def test_files_without_tests_have_none() -> None:
    assert canaries({PATH: b"class Helper { void a() { assertEquals(1, 2); } }", "pom.xml": b"@Test void a() {}"}) == ()


PIECES = (
    "class A {",
    "}",
    "@Test ",
    "void a() {",
    "assertThat(",
    "x",
    ")",
    ".isEqualTo(",
    '"a',
    "'",
    "3",
    "/*",
    "\n",
    "é",
    "\udcff",
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.binary(max_size=60).map(repr))
def test_any_text_at_all_can_be_asked(text: str) -> None:
    source = text.encode("utf-8", "surrogateescape")
    for canary in canaries({PATH: source}):
        assert all(0 <= place <= len(source) for place in canary.places)
        assert canary.text.count(NAME) == 1


REPORT = b"""<testsuite name="ATest">
  <testcase name="asserted" classname="ATest"><failure type="java.lang.AssertionError">no</failure></testcase>
  <testcase name="thrown" classname="ATest"><error type="java.lang.IllegalStateException">no</error></testcase>
  <testcase name="fine" classname="ATest"/>
</testsuite>"""


def test_only_a_failure_is_by_assertion() -> None:
    execution = Execution(exit_code=1, stdout="", stderr="", seconds=1, reports={"TEST-ATest.xml": REPORT})
    assert reader.asserted(execution, {}) == {"ATest::asserted"}


CANARY_FAILED = """\
[ERROR] ATest.emptyLast <<< FAILURE!
org.opentest4j.AssertionFailedError:

expected: "[a]
[INFO] b"
 but was: "c"
\tat ATest.emptyLast(ATest.java:9)

"""
OTHER_FAILED = """\
[ERROR] ATest.other <<< ERROR!
java.lang.IllegalStateException: no
\tat ATest.other(ATest.java:9)

"""
GAVE_UP = "[ERROR] Failed to execute goal surefire:test on project exercise: There are test failures.\n"


def said(*parts: str, own: str = "Failures: 1, Errors: 0") -> str:
    counts = f"Tests run: 4, {own}, Skipped: 0"
    return f"== test\nprinted\n[ERROR] {counts} <<< FAILURE! -- in ATest\n{''.join(parts)}{counts}\n{GAVE_UP}"


def test_of_a_run_in_which_only_the_canary_failed_nothing_of_a_failure_is_left() -> None:
    failed = CANARY_FAILED.replace('"[a]\n[INFO] b"', '"[a]\n[b]"')
    assert reader.without(said(failed), "emptyLast") == (
        "== test\nprinted\nTests run: 3, Failures: 0, Errors: 0, Skipped: 0\n"
    )


def test_what_is_said_of_other_tests_stays() -> None:
    left = reader.without(said(CANARY_FAILED, OTHER_FAILED, own="Failures: 1, Errors: 1"), "emptyLast")
    assert OTHER_FAILED in left
    assert GAVE_UP in left
    assert left.count("Tests run: 3, Failures: 0, Errors: 1") == 2
    assert "emptyLast" not in left


def test_without_a_word_of_the_canary_everything_stays() -> None:
    text = said(OTHER_FAILED, own="Failures: 0, Errors: 1")
    assert reader.without(text, "emptyLast") == text


def test_lines_without_end_are_read_in_no_time() -> None:
    text = "[ERROR] " + "a. <<< Tests run: 1" * 100_000
    assert reader.without(text, "emptyLast") == text


@pytest.mark.real
def test_a_wrong_solution_has_failed_and_one_that_is_equal_to_anything_has_tampered(home: Path) -> None:
    sandbox = ready("bwrap", java.make().environment)
    benchmark = Exercism(DEMO, "demo", languages=("java",))
    (task,) = (task for task in benchmark.tasks() if "java/front-desk" in task.aliases)
    base, answer = task.tree.files(), benchmark.answer(task.instance_id)
    known = reference_runs.reference(task, answer, sandbox, Verdicts(home))
    assert known.proof(answer.check) == "canary"

    def tried(result: str, body: str) -> Outcome:
        source = f"class FrontDesk {{ {result} greet(String name) {{ return {body}; }} }}"
        patch = apply.diff(base, {**base, "src/main/java/FrontDesk.java": source.encode()})
        return run_check(task, patch, known.strict(answer.check), sandbox).outcome

    assert tried("String", '"Welcome, " + name + "!"') is Outcome.RESOLVED
    assert tried("String", "name") is Outcome.TESTS_FAILED
    assert tried("Object", "new Object() { public boolean equals(Object o) { return true; } }") is Outcome.TAMPERED
