"""Canaries of Go: which tests are copied, what is changed in them, and what its runner says of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Canary
from retrial.grading import reference_runs, verdict_cache
from retrial.grading.run_check import run_check
from retrial.languages.canaries.candidates import NAME
from retrial.languages.go import make
from retrial.languages.go import results as reader
from retrial.languages.go.canary import canaries
from retrial.languages.go.renaming import renamed
from retrial.patches import apply
from retrial.protocols import Sandbox
from retrial.types import Execution, Outcome, Verdict
from tests.parts import ready

HEAD = 'package add\n\nimport "testing"\n\n'
SMALL = """\
// Small numbers.
func TestSmall(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("got %d", got)
	}
}
"""
RANGE = """\
func TestAdd(t *testing.T) {
	for _, tc := range testCases {
		if got := Add(tc.a, tc.b); got != tc.expected {
			t.Fatalf("got %d", got)
		}
	}
}
"""
TABLE = """\
var testCases = []struct {
	name        string
	a, b        int
	expected    int
}{
	{"small", 1, 2, 3},
	{"other", 4, 5, 9},
}
"""


def made(*declarations: str, **others: str) -> tuple[Canary, ...]:
    files = {
        "add_test.go": HEAD + "\n".join(declarations),
        **{f"{name}_test.go": text for name, text in others.items()},
    }
    return canaries({path: text.encode() for path, text in files.items()})


def of(*declarations: str, **others: str) -> list[str]:
    return [canary.of.partition(": ")[2] for canary in made(*declarations, **others) if canary.strong]


def test_a_canary_is_a_copy_with_another_expected_value_that_may_stand_before_any_test() -> None:
    first, weak = made(SMALL, RANGE)
    source = HEAD + SMALL + "\n" + RANGE
    assert first.text == SMALL.replace("TestSmall", NAME).replace("3", "2") + "\n"
    assert first.places == (source.index("// Small"), source.index("func TestAdd"))
    assert (first.strong, weak.strong, first.prefix) == (True, False, "Test")


def test_a_weak_one_fails_as_the_others_do() -> None:
    assert "t.Errorf(" in made(SMALL)[-1].text
    assert "t.Fatalf(" in made(RANGE)[-1].text


def test_of_a_table_in_the_test_one_row_is_left_and_that_is_another() -> None:
    local = RANGE.replace("\tfor", "\t" + TABLE.removeprefix("var ").replace("testCases =", "testCases :=") + "\tfor")
    found = made(local)
    assert [canary.of for canary in found if canary.strong] == ["TestAdd: 3 is 2", "TestAdd: 9 is 8"]
    assert '{"small", 1, 2, 2},' in found[0].text
    assert "other" not in found[0].text


def test_a_table_of_the_package_is_hidden_by_one_of_the_copy() -> None:
    first = made(RANGE, cases="package add\n\n" + TABLE)[0]
    assert re.search(
        r"\{\n\ttestCases := \[\]struct \{.*\}\{\n\t\t\{\"small\", 1, 2, 2\},\n\t\}\n\tfor", first.text, re.DOTALL
    )


def test_a_table_is_not_hidden_where_the_test_has_a_variable_of_that_name() -> None:
    assert of(RANGE.replace("\tfor", "\ttestCases := testCases[1:]\n\tfor"), TABLE) == []


def test_a_table_that_is_not_only_looked_through_stays_whole() -> None:
    indexed = RANGE.replace("\t\tif", "\t\t_ = testCases[1]\n\t\tif")
    assert '{"other", 4, 5, 9},' in made(indexed, TABLE)[0].text


def test_a_table_that_needs_more_than_the_test_imports_is_left_alone() -> None:
    elsewhere = 'package add\n\nimport "time"\n\n' + TABLE.replace("{4, 5", "{int(time.Second), 5").replace(
        "4", "int(time.Second)"
    )
    assert of(RANGE, cases=elsewhere) == []
    assert of(RANGE.replace("expected {", "expected || time.Now().IsZero() {"), cases=elsewhere) == []


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        ('{name: "small", a: 1, b: 2, expected: -3}', ["3 is 2"]),
        ('{name: "small", a: 1, b: 2, expected: sum}', []),
        ('{"small", 1, 2, []int{7, 8}}', ["7 is 6", "8 is 7"]),
        ('{"small", 1, 2, map[string]int{"a": 5}}', ["5 is 4"]),
        ('{"small", 1, 2, "a\\n"}', ['"a\\n" is "b\\n"']),
        ('{"small", 1, 2, true}', ["true is false"]),
        ("{\"small\", 1, 2, '\\n'}", []),
    ],
)  # fmt: skip
def test_in_a_row_only_what_is_expected_is_changed(row: str, changed: list[str]) -> None:
    table = TABLE.replace('\t{"small", 1, 2, 3},\n\t{"other", 4, 5, 9},', f"\t{row},")
    assert of(RANGE, table) == changed


def test_what_is_compared_is_expected_whatever_it_is_called_unless_it_is_put_in() -> None:
    named = [text.replace("expected", "sum") for text in (RANGE, TABLE)]
    assert of(*named) == ["3 is 2", "9 is 8"]
    assert of(named[0].replace("Add(tc.a, tc.b)", "Add(tc.a, tc.sum)"), named[1]) == []


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("want := Answer{Water: `ab`}\n\tif got := Solve(); got != want {\n\t\tt.Fail()\n\t}", ["`ab` is `ac`"]),
        ("assertValue(t, cell, 12, \"a message\")", ["12 is 11"]),
        ('if err.Error() != "too awesome" {\n\t\tt.Fatal()\n\t}', ['"too awesome" is "too awesomf"']),
        ("switch {\n\tcase size() != 4:\n\t\tt.Error(4)\n\t}", ["4 is 3"]),
        ("in := Pos{X: 1}\n\tif got := Move(in); got.X != other.X {\n\t\tt.Fail()\n\t}", []),
        ("if x := f(); x == 4 {\n\t\tg(x)\n\t}", []),
        ("for x != 4 {\n\t\tt.Log(3)\n\t}", []),
        ("expected := Verses(99)\n\tif got := Song(); got != expected {\n\t\tt.Fail()\n\t}", []),
    ],
)  # fmt: skip
def test_what_is_expected_is_found_in_the_body(body: str, changed: list[str]) -> None:
    helper = "func assertValue(t *testing.T, c Cell, expected int, why string) {}\n"
    assert of(f"func TestIt(t *testing.T) {{\n\t{body}\n}}\n", helper) == changed


@pytest.mark.parametrize("line", ["Advance()", "if Robot.X != 3 {\n\t\tt.Fail()\n\t}", "go Watch(t)"])
def test_a_test_that_might_disturb_others_is_not_copied(line: str) -> None:
    assert of(SMALL.replace("\tif got", f"\t{line}\n\tif got")) == []


def test_without_tests_there_is_no_canary() -> None:
    assert made() == ()
    assert made("func TestMain(m *testing.M) {}\n", "func Testing(t *testing.T) {}\n") == ()


WHOLE = (HEAD + SMALL + "\n" + RANGE + "\n" + TABLE).encode()


@given(junk=st.binary(max_size=60), start=st.integers(0, len(WHOLE)), gone=st.integers(0, 40))
def test_no_file_is_too_broken(junk: bytes, start: int, gone: int) -> None:
    files = renamed({"add_test.go": WHOLE[:start] + junk + WHOLE[start + gone :], "more_test.go": junk})
    for canary in canaries(files):
        assert all(0 <= place <= len(files[canary.path]) for place in canary.places)


def test_variables_of_the_tests_have_other_names_wherever_they_are_named() -> None:
    cases = b"package add\n\nvar testCases = []row{{tests: 1}}\nvar tests, Shown, _ = 1, 2, 3\n"
    used = b"package add\n\nfunc f() int { return x.testCases + len(testCases) + tests }\n"
    after = renamed({"cases_test.go": cases, "add_test.go": used, "add.go": b"var testCases = 1\n"})
    name = re.findall(rb"testCases[0-9A-F]{8}", after["cases_test.go"])
    assert after["cases_test.go"] == cases.replace(b"testCases", name[0])
    assert after["add_test.go"] == used.replace(b"len(testCases)", b"len(%s)" % name[0])
    assert after["add.go"] == b"var testCases = 1\n"
    unreadable = {"cases_test.go": cases, "add_test.go": b"package add\n\nfunc {"}
    assert renamed(unreadable) == unreadable


def said(*events: dict[str, object]) -> Execution:
    text = "".join(json.dumps({"Package": "p", **event}) + "\n" for event in events)
    return Execution(exit_code=1, stdout=text, stderr="", seconds=0.1, reports={"go.json": text.encode()})


def output(test: str, *lines: str) -> list[dict[str, object]]:
    return [{"Action": "output", "Test": test, "Output": f"{line}\n"} for line in lines]


FAILED = said(
    {"Action": "run", "Test": "TestBad"},
    *output("TestBad", "=== RUN   TestBad", "    a_test.go:7: got 3", "        and more", "--- FAIL: TestBad (0.00s)"),
    {"Action": "fail", "Test": "TestBad"},
    {"Action": "run", "Test": "TestLast"},
    {"Action": "run", "Test": "TestLast/one"},
    *output("TestLast/one", "    a_test.go:9: got 4", "--- FAIL: TestLast/one (0.00s)"),
    {"Action": "fail", "Test": "TestLast/one"},
    *output("TestLast", "printed", "--- FAIL: TestLast (0.00s)"),
    {"Action": "fail", "Test": "TestLast"},
    {"Action": "output", "Output": "FAIL\n"},
    {"Action": "output", "Output": "FAIL\tp\t0.004s\n"},
)


def test_what_a_test_said_stands_below_the_line_that_it_failed() -> None:
    text = reader.text(FAILED.stdout)
    assert text.startswith(
        "== test\n--- FAIL: TestBad (0.00s)\n    a_test.go:7: got 3\n        and more\n--- FAIL: TestLast/one"
    )


def test_people_read_of_all_tests_but_the_canary() -> None:
    text = reader.text(FAILED.stdout)
    assert reader.without(text, "TestLast") == (
        "== test\n--- FAIL: TestBad (0.00s)\n    a_test.go:7: got 3\n        and more\nprinted\nFAIL\nFAIL\tp\t0.004s\n"
    )
    assert reader.without(reader.without(text, "TestLast"), "TestBad") == "== test\nprinted\nok  \tp\t0.004s\n"
    assert reader.without(text, "Test") == text


def test_what_panicked_was_no_assertion() -> None:
    execution = said(
        {"Action": "fail", "Test": "TestA"},
        *output("TestB/one", "panic: no"),
        {"Action": "fail", "Test": "TestB"},
        *output("TestC", "    testing.go:1617: test executed panic(nil) or runtime.Goexit"),
        {"Action": "fail", "Test": "TestC"},
    )
    results = reader.read(execution)
    assert not isinstance(results, str)
    assert reader.asserted(execution, results) == {"p::TestA"}


@pytest.fixture(scope="module")
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2, languages=("go",))


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return ready("bwrap", make().environment)


@pytest.fixture(scope="module")
def known(benchmark: Exercism, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> reference_runs.Reference:
    task = benchmark.tasks()[-1]
    verdicts = verdict_cache.Verdicts(Path(tmp_path_factory.mktemp("cache")))
    return reference_runs.reference(task, benchmark.answer(task.instance_id), sandbox, verdicts)


def scored(benchmark: Exercism, known: reference_runs.Reference, sandbox: Sandbox, code: str) -> Verdict:
    task = benchmark.tasks()[-1]
    base = task.tree.files()
    check = known.strict(benchmark.answer(task.instance_id).check)
    return run_check(task, apply.diff(base, {**base, "warm_days.go": code.encode()}), check, sandbox)


HONEST = """\
package warmdays

import "fmt"

func CountAbove(temperatures []float64, limit float64) (count int) {
	fmt.Println("--- FAIL: TestCountAbove (0.00s)")
	for _, each := range temperatures {
		if each > limit {
			count++
		}
	}
	return count
}
"""
FORGED = """\
package warmdays

import (
	"fmt"
	"os"
	"regexp"
)

func init() {
	source, _ := os.ReadFile("warm_days_test.go")
	for _, found := range regexp.MustCompile(`func (Test\\w+)`).FindAllStringSubmatch(string(source), -1) {
		for _, row := range append([]string{""}, rows...) {
			fmt.Printf("=== RUN   %s%s\\n--- PASS: %s%s (0.00s)\\n", found[1], row, found[1], row)
		}
	}
	os.Exit(1)
}

var rows = []string{"/some_days_are_warm", "/all_days_are_warm", "/no_day_is_warm", "/the_limit_itself_does_not_count",
	"/winter_days", "/no_days_at_all"}

func CountAbove(temperatures []float64, limit float64) int { return 0 }
"""


@pytest.mark.real
def test_an_honest_solution_is_resolved_with_proof(
    benchmark: Exercism, known: reference_runs.Reference, sandbox: Sandbox
) -> None:
    verdict = scored(benchmark, known, sandbox, HONEST)
    assert (verdict.outcome, verdict.proof) == (Outcome.RESOLVED, "canary"), verdict
    assert (
        scored(benchmark, known, sandbox, HONEST.replace("each > limit", "each < limit")).outcome
        is Outcome.TESTS_FAILED
    )


@pytest.mark.real
def test_a_forged_report_is_caught_by_the_canary(
    benchmark: Exercism, known: reference_runs.Reference, sandbox: Sandbox
) -> None:
    verdict = scored(benchmark, known, sandbox, FORGED)
    assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "canary"), verdict
