"""C++'s canaries: which values test cases expect, where copies can be compiled, and what is said of one that failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Canary, Naming
from retrial.grading import reference_runs
from retrial.grading.run_check import run_check
from retrial.grading.verdict_cache import Verdicts
from retrial.languages import cpp
from retrial.languages.canaries.candidates import NAME
from retrial.languages.cpp import results as reader
from retrial.languages.cpp.canary import canaries
from retrial.patches import apply
from retrial.types import Execution, Outcome
from tests.parts import ready

PATH = "a_test.cpp"


def of(text: str) -> list[Canary]:
    return [canary for canary in canaries({PATH: text.encode()}) if canary.strong]


def changed(statements: str, before: str = "") -> list[str]:
    """What is changed in copies of a test of these statements, in a file that begins like this."""
    found = of(f'#include "a.h"\n{before}\nTEST_CASE("small", "[tag]") {{\n    {statements}\n}}\n')
    return [canary.of.removeprefix("small: ") for canary in found]


@pytest.mark.parametrize(
    ("statements", "first"),
    [
        ("REQUIRE(add(1, 2) == 3);", "3 is 2"),
        ("CHECK(-3 == add(-5, 2));", "-3 is -2"),
        ("REQUIRE((add(1, 2) == 3));", "3 is 2"),
        ('REQUIRE("08:00" == string(clock::at(8, 0)));', '"08:00" is "08:01"'),
        ("CHECK(counts['a'] == 1);", "1 is 2"),
        ("REQUIRE(f(1) == std::vector<int>{4, 5});", "4 is 3"),
        ('REQUIRE(f(1) == std::string("a"));', '"a" is "b"'),
        ("REQUIRE_THAT(f(1), Catch::Matchers::WithinAbs(31.69, 0.01));", "31.69 is 32.69"),
        ("REQUIRE(true == f(1));", "true is false"),
        ('SECTION("one") { REQUIRE(solution.owner == "Fox"); }', '"Fox" is "Foy"'),
        ("vector<int> expected{5}; auto found = f(2, 10); REQUIRE(expected == found);", "5 is 4"),
        ('const ptime expected(time("2043-01-01")); REQUIRE(expected == f());', '"2043-01-01" is "2043-01-02"'),
        ("const auto want = 7; REQUIRE(f(1) == want);", "7 is 6"),
        ("REQUIRE(board.can_attack());", "REQUIRE is REQUIRE_FALSE"),
        ("CHECK_FALSE(board.can_attack());", "CHECK_FALSE is CHECK"),
    ],
)
def test_what_is_expected_is_changed_before_anything_else(statements: str, first: str) -> None:
    assert changed(statements)[0] == first


@pytest.mark.parametrize(
    "statements",
    [
        "REQUIRE(f(1) != 3);",
        "REQUIRE(f(1) < 3);",
        "REQUIRE((f(1) != g(1)));",
        "REQUIRE(!(f(1) == g(1)));",
        "REQUIRE(f(1) == g(2));",
        "REQUIRE_THROWS_AS(f(1), std::domain_error);",
        'REQUIRE(f(1) == R"x(a)x");',
        "REQUIRE(f(1) == '\\n');",
        "const auto made = f(3); REQUIRE(made == g());",
    ],
)
def test_what_is_put_in_and_what_is_no_equality_are_left_alone(statements: str) -> None:
    assert changed(statements) == []


def test_a_constant_becomes_another_of_its_kind() -> None:
    win, draw = "REQUIRE(game::State::win == f(1));", "REQUIRE(f(2) == game::State::draw);"
    assert changed(win + draw) == ["game::State::win is game::State::draw", "game::State::draw is game::State::win"]
    assert changed(win) == []


def test_what_functions_of_the_test_file_get_is_changed_only_where_there_is_nothing_else() -> None:
    helper = "template <class T>\nstatic void check(const T& node, int id) { REQUIRE(node.id() == id); }"
    assert changed("check<Node>(tree, 7);", helper) == ["7 is 6"]
    assert changed("check<Node>(tree, 7); REQUIRE(tree.size() == 5);", helper) == ["5 is 4"]


REGIONS = """\
#include "a.h"
TEST_CASE("first one") { REQUIRE(f(0) == 1); }

#if defined(EXERCISM_RUN_ALL_TESTS)
TEST_CASE("second one") { REQUIRE(f(1) == 2); }

// about the third
TEST_CASE("third one") { REQUIRE(f(2) == 3); }

const int more = 4;
TEST_CASE("fourth one") { REQUIRE(f(more) == 5); }
#endif
"""


def test_a_copy_goes_only_where_all_that_it_leans_on_is_known_and_compiled() -> None:
    found = {canary.of: [REGIONS[place:].split('"')[1] for place in canary.places] for canary in of(REGIONS)}
    assert found == {
        "second one: 2 is 1": ["second one", "third one"],
        "third one: 3 is 2": ["second one", "third one"],
        "first one: 1 is 2": ["first one"],
        "fourth one: 5 is 4": ["fourth one"],
    }


@pytest.mark.parametrize(
    ("names", "naming"), [(("a_b", "c"), Naming.SNAKE), (("a b", "c"), Naming.WORDS), (("a-> b",), Naming.WORDS)]
)
def test_names_are_written_as_those_of_the_file(names: tuple[str, ...], naming: Naming) -> None:
    found = of("\n".join(f'TEST_CASE("{name}") {{ REQUIRE(f() == 1); }}' for name in names))
    assert {canary.naming for canary in found} == {naming}


@pytest.mark.parametrize("begin", ['TEST_CASE("a", "[.slow]")', 'TEST_CASE("a", "[!mayfail]")', "TEST_CASE()"])
def test_cases_that_are_hidden_or_may_fail_are_not_copied(begin: str) -> None:
    assert of(f"{begin} {{ REQUIRE(f(1) == 2); }}") == []


def test_where_nothing_can_be_changed_one_fails_whatever_happens() -> None:
    (canary,) = canaries({PATH: b'TEST_CASE("a") { run(); }'})
    assert not canary.strong
    assert canary.text == f'TEST_CASE("{NAME}") {{\n    REQUIRE(1 == 2);\n}}\n\n'


def test_only_test_files_have_any() -> None:
    text = b'TEST_CASE("a") { REQUIRE(f(1) == 2); }'
    assert canaries({"test/catch.hpp": text, "a.cpp": text}) == ()


PIECES = (
    "TEST_CASE(",
    '"a"',
    ")",
    "{",
    "}",
    "REQUIRE(",
    "f(1)",
    "==",
    "3",
    "#if X\n",
    "#endif\n",
    "expected = ",
    ";",
    "é",
    "\udcff",
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.binary(max_size=60).map(repr))
def test_any_text_at_all_can_be_asked(text: str) -> None:
    source = text.encode("utf-8", "surrogateescape")
    for canary in canaries({PATH: source}):
        assert all(0 <= place <= len(source) for place in canary.places)
        assert canary.text.count(NAME) == 1


REPORT = b"""<testsuites><testsuite>
<testcase classname="a.global" name="asserted"><failure message="f() == 1" type="REQUIRE">FAILED</failure></testcase>
<testcase classname="a.global" name="thrown"><error message="f() == 1" type="REQUIRE">FAILED</error></testcase>
<testcase classname="a.global" name="fine"/>
</testsuite></testsuites>"""


def test_only_a_failure_is_by_assertion() -> None:
    execution = Execution(exit_code=2, stdout="", stderr="", seconds=1, reports={"junit.xml": REPORT})
    assert reader.asserted(execution, {}) == {"a.global::asserted"}


def test_all_that_is_said_of_a_test_is_left_out_and_nothing_else() -> None:
    said = "== test\n--- first last\nFAILED:\n  REQUIRE( f(1) == 2 )\nat a_test.cpp:8\n--- other\nFAILED:\n"
    assert reader.without(said, "first last") == "== test\n--- other\nFAILED:\n"
    assert reader.without(said, "empty") == said


def test_every_number_of_failed_assertions_is_a_status_but_those_of_signals() -> None:
    assert cpp.make().failure_exit_codes == tuple(range(1, 128))


EQUAL = """\
#pragma once
#include <ostream>
namespace ticket_price {
struct Any { template <class T> bool operator==(const T&) const { return true; } };
inline std::ostream& operator<<(std::ostream& out, const Any&) { return out; }
Any price(int age);
}
"""
SOURCE = """\
#include "ticket_price.h"
#include <stdexcept>
namespace ticket_price {{
{result} price(int age) {{ {body} }}
}}
"""
REFUSED = 'if (age < 0) throw std::invalid_argument("age");'


@pytest.mark.real
def test_a_wrong_solution_has_failed_and_one_that_is_equal_to_anything_has_tampered(home: Path) -> None:
    sandbox = ready("bwrap", cpp.make().environment)
    benchmark = Exercism(DEMO, "demo", languages=("cpp",))
    (task,) = (task for task in benchmark.tasks() if "cpp/ticket-price" in task.aliases)
    base, answer = task.tree.files(), benchmark.answer(task.instance_id)
    known = reference_runs.reference(task, answer, sandbox, Verdicts(home))
    assert known.proof(answer.check) == "canary"

    def tried(result: str, body: str, header: str | None = None) -> Outcome:
        files = {
            "ticket_price.cpp": SOURCE.format(result=result, body=body),
            **({"ticket_price.h": header} if header else {}),
        }
        patch = apply.diff(base, {**base, **{path: text.encode() for path, text in files.items()}})
        return run_check(task, patch, known.strict(answer.check), sandbox).outcome

    assert tried("int", f"{REFUSED} return age < 6 ? 0 : age < 18 ? 4 : age < 65 ? 10 : 7;") is Outcome.RESOLVED
    assert tried("int", f"{REFUSED} return 1;") is Outcome.TESTS_FAILED
    assert tried("Any", f"{REFUSED} return {{}};", EQUAL) is Outcome.TAMPERED
