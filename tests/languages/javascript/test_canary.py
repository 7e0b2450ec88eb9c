"""JavaScript's canaries: what they are made of, and what is said of them when they have failed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.checks import Canary
from retrial.languages.canaries.candidates import NAME
from retrial.languages.javascript import canary
from retrial.languages.javascript import results as reader
from retrial.types import Execution

JEST = b"""\
import { add } from './add';

describe('add', () => {
  test('two numbers', () => {
    expect(add(1, 2)).toEqual(3);
  });
});
"""
NODE = """\
const test = require('node:test');
const assert = require('node:assert');
const { add } = require('./add');

test('two numbers', () => assert.strictEqual(add(1, 2), 3));
test('a negative one', () => assert.strictEqual(add(1, -2), -1));
"""


def canaries(text: str | bytes, path: str = "a.spec.js") -> tuple[Canary, ...]:
    return canary.canaries({path: text.encode() if isinstance(text, str) else text})


def changes(text: str) -> list[str]:
    return [made.of.partition(": ")[2] for made in canaries(text) if made.strong]


def test_a_canary_is_a_copy_with_one_literal_changed() -> None:
    first = canaries(JEST)[0]
    assert first.text == f"  test('{NAME}', () => {{\n    expect(add(1, 2)).toEqual(2);\n  }});\n\n"
    assert first.strong
    assert first.places == (JEST.index(b"  test("),)


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("expect(f(1)).toBe('ab');", ["'ab' is 'ac'"]),
        ("expect(f(1)).toEqual([-3, { a: 5, b: true }]);", ["3 is 2", "5 is 4", "true is false"]),
        ("expect(f(1)).toEqual([]);", ["[] is [0]"]),
        ("expect(f(1)).toEqual({});", ["{} is { x: 0 }"]),
        ("expect(f(1)).toEqual(new Date(2013, 4));", ["2013 is 2012", "4 is 3"]),
        ("expect(f(1)).toEqual(['a', 'b'].join('\\n'));", ["'a' is 'b'", "'b' is 'c'", "'\\n' is '\\nx'"]),
        ("const wanted = 5;\nexpect(f(1)).toEqual(wanted);", ["5 is 4"]),
        ("const wanted = { value: 7 };\nexpect(f(1)).toEqual(wanted.value);", ["7 is 6"]),
        ("return expect(f(1)).resolves.toEqual(4);", ["4 is 3"]),
        ("expect(() => f(1)).toThrow(new Error('no'));", ["'no' is 'np'"]),
        ("assert.deepEqual(f(1), [2]);", ["2 is 1"]),
        ("strictEqual(5, f(1), 'so it is');", ["5 is 4"]),
        ("assert(f(1) === 3);", ["3 is 2"]),
    ],
)
def test_what_is_expected_is_what_is_changed(body: str, changed: list[str]) -> None:
    assert changes(f"test('a', () => {{\n{body}\n}});") == changed


@pytest.mark.parametrize(
    "body",
    [
        "expect(f(1)).not.toBe(3);",
        "expect(f(1)).toBeNull();",
        "expect(f(1)[2]).toMatch(/3/);",
        "expect(f(1)).toEqual(`${x}`);",
        "assert.ok(f(1), 'must hold');",
    ],
)
def test_what_is_not_expected_is_left_alone_and_a_failure_of_the_same_kind_made_instead(body: str) -> None:
    (only,) = canaries(f"it('a', () => {{ {body} }});")
    assert not only.strong
    assert only.text.startswith(f"it('{NAME}', () => {{\n  ")


def test_the_weak_one_fails_through_the_file_s_own_assertion() -> None:
    (jest,) = canaries("it('a', () => expect(f()).toEqual(b));")
    assert jest.text == f"it('{NAME}', () => {{\n  expect(1).toEqual(2);\n}});\n\n"
    (node,) = canaries("it('a', () => assert.deepEqual(f(), b));")
    assert "  assert.deepEqual(1, 2);" in node.text


def test_a_value_of_the_solution_s_own_comes_first_then_tests_that_stand_alone() -> None:
    text = """\
const shared = new Thing();
test('kind', () => expect(f() instanceof Thing).toEqual(true));
test('thrown', () => expect(() => f()).toThrow('no'));
test('leans', () => expect(shared.x).toEqual(2));
test('same', () => expect(f()).toBe(4));
test('equal', () => expect(f()).toEqual(6));
"""
    assert changes(text) == ["6 is 5", "4 is 3", "2 is 1", "true is false", "'no' is 'np'"]


def test_what_is_made_anew_for_each_test_is_nothing_to_lean_on() -> None:
    text = "let x; beforeEach(() => { x = new X(); });\ntest('a', () => expect(x.a).toEqual(1));\n"
    assert changes(text + "test('b', () => expect(f()).toBe(4));") == ["1 is 2", "4 is 3"]


def test_a_copy_stays_among_the_tests_of_its_own_suite() -> None:
    text = "describe('a', () => {\n  let k;\n  test('b', () => expect(f(k)).toBe(2));\n});\ntest('c', () => {});\n"
    assert canaries(text)[0].places == (text.index("  test('b'"),)


def test_a_column_of_a_table_is_what_its_test_expects() -> None:
    text = "test.each([[1, 2, 3], [4, 5, 9]])('%i + %i', (a, b, sum) => { expect(add(a, b)).toBe(sum); });"
    assert changes(text) == ["3 is 2", "9 is 8"]


@pytest.mark.parametrize(
    "text",
    [
        "test.skip('a', () => expect(f()).toBe(1));",
        "test.todo('a');",
        "export const helper = 1;",
        "",
    ],
)
def test_where_no_test_is_run_there_is_no_canary(text: str) -> None:
    assert canaries(text) == ()


def test_tests_that_a_loop_makes_get_a_weak_one_behind_them() -> None:
    text = "for (const [a, b] of cases) {\n  test(`gives ${b}`, () => expect(f(a)).toEqual(b));\n}"
    (only,) = canaries(text)
    assert (only.strong, only.places) == (False, (len(text),))
    assert only.text.startswith(f"\ntest('{NAME}', ")


def test_every_test_file_has_its_turn_and_a_weak_one_comes_last() -> None:
    files = {"c.spec.js": JEST, "b.spec.js": JEST + JEST, "a.test.js": b"test('x', () => f());", "helper.js": JEST}
    found = [(made.path, made.strong) for made in canary.canaries(files)]
    assert found == [("b.spec.js", True), ("c.spec.js", True), ("b.spec.js", True), ("a.test.js", False)]


@given(st.binary(max_size=200), st.integers(0, len(JEST)), st.integers(0, 40))
def test_no_text_is_too_broken(junk: bytes, place: int, gone: int) -> None:
    for text in (junk, JEST[:place] + junk + JEST[place + gone :], NODE.encode()[:place] + junk):
        for made in canary.canaries({"a.spec.js": text}):
            assert all(0 <= position <= len(text) for position in made.places)


def test_no_text_is_too_deep() -> None:
    assert canaries("test('a', () => expect(f()).toEqual(" + "[" * 5000 + "1" + "]" * 5000 + "));")


def failed(**detail: object) -> Execution:
    row = {"ancestorTitles": [], "title": "a", "status": "failed", "failureDetails": [detail]}
    report = {"testResults": [{"name": "a.spec.js", "status": "failed", "assertionResults": [row]}]}
    return Execution(exit_code=1, stdout="", stderr="", seconds=0.1, reports={"jest.json": json.dumps(report).encode()})


def test_only_what_was_not_as_expected_failed_by_an_assertion() -> None:
    for detail in (
        {"matcherResult": {"pass": False}},
        {"code": "ERR_ASSERTION"},
        {"message": "assert.equal(received, expected)"},
    ):
        assert reader.asserted(failed(**detail), {}) == {"a.spec.js::a"}
    for detail in ({}, {"code": "testTimeoutFailure"}, {"message": "thrown: Exceeded timeout of 50 ms"}):
        assert reader.asserted(failed(**detail), {}) == frozenset()


PRINTED_BY_JEST = """\
  console.log
    the solution speaks

FAIL ./add.spec.js
  add
    ✓ two numbers (2 ms)
    ✕ some other name (1 ms)
{line}
  ● add › some other name

    expect(received).toEqual(expected) // deep equality

    Expected: 2
    Received: 3

      at Object.toEqual (add.spec.js:9:23)
{block}
Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 passed, 2 total
Ran all test suites within paths "add.spec.js".
"""
PRINTED_BY_NODE = """\
the solution speaks
✔ two numbers (1.5ms)
▶ add
  ✖ some other name (0.5ms)
{line}✖ add (6.0ms)
ℹ tests 3
ℹ pass 1
ℹ fail 2
ℹ duration_ms 62.6

✖ failing tests:

test at add.test.js:6:1
✖ some other name (0.5ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  3 !== 2

      at TestContext.<anonymous> (add.test.js:6:28) {{
    code: 'ERR_ASSERTION'
  }}
{block}"""


def test_of_a_canary_that_alone_failed_nothing_is_left() -> None:
    jest = PRINTED_BY_JEST.format(line="", block="")
    assert reader.without(jest, "some other name") == (
        "  console.log\n    the solution speaks\n\n  add\n    ✓ two numbers (2 ms)\n"
        'Ran all test suites within paths "add.spec.js".\n'
    )
    node = PRINTED_BY_NODE.format(line="", block="")
    assert reader.without(node, "some other name") == (
        "the solution speaks\n✔ two numbers (1.5ms)\n▶ add\nℹ duration_ms 62.6\n\n\n"
    )


def test_of_another_test_that_failed_all_is_left() -> None:
    block = "\n  ● add › minus\n\n    Expected: 2\n\n    > 1 | expect(f()).toEqual(2)\n"
    left = reader.without(PRINTED_BY_JEST.format(line="    ✕ minus (1 ms)\n", block=block), "some other name")
    assert "    ✕ minus (1 ms)\n" in left
    assert block in left
    assert "FAIL ./add.spec.js" in left
    block = "\ntest at add.test.js:9:1\n✖ minus (0.1ms)\n  Error: x\n\n      at y\n"
    left = reader.without(PRINTED_BY_NODE.format(line="  ✖ minus (0.1ms)\n", block=block), "some other name")
    assert "  ✖ minus (0.1ms)\n✖ add (6.0ms)\n" in left
    assert left.endswith("✖ failing tests:\n" + block)


def test_a_text_that_does_not_name_the_canary_stays_as_it_is() -> None:
    text = PRINTED_BY_JEST.format(line="", block="")
    assert reader.without(text, "two words") == text


@given(st.text(alphabet="●✕✖▶ℹ \nab()1.", max_size=300))
def test_lines_are_only_left_out_and_never_changed(text: str) -> None:
    left = reader.without(text, "ab").splitlines()
    rest = iter(text.splitlines())
    assert all(line in rest for line in left)
    assert not any("ab" in line for line in left)


def test_megabytes_of_anything_are_read_in_no_time() -> None:
    text = "  ● ab\n" * 300_000 + "● " * 500_000
    assert "ab" not in reader.without(text, "ab")
