"""Canaries of Rust: which tests are copied, what is changed in them, and what its runner says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Canary
from retrial.grading import reference_runs, verdict_cache
from retrial.grading.run_check import run_check
from retrial.languages.canaries.candidates import NAME
from retrial.languages.rust import make
from retrial.languages.rust import results as reader
from retrial.languages.rust.canary import canaries
from retrial.patches import apply
from retrial.protocols import Sandbox
from retrial.types import Execution, Outcome, Verdict
from tests.parts import ready

HEAD = "use add::*;\n\n"
SMALL = "#[test]\nfn small() {\n    assert_eq!(add(1, 2), 3);\n}\n\n"
TWO = HEAD + SMALL + "#[test]\n#[ignore]\nfn other() {\n    assert!(ok());\n}\n"


def made(source: str, path: str = "tests/add.rs") -> tuple[Canary, ...]:
    return canaries({path: source.encode()})


def of(body: str, attributes: str = "#[test]") -> list[str]:
    """What is changed in a test with this body."""
    found = made(f"{HEAD}{attributes}\nfn small() {{\n    {body}\n}}\n")
    return [canary.of.removeprefix("small: ") for canary in found if canary.strong]


def test_a_canary_is_a_copy_with_another_expected_value_that_may_stand_before_any_test() -> None:
    first, *_, last = made(TWO)
    assert first.text == f"#[test]\nfn {NAME}() {{\n    assert_eq!(add(1, 2), 2);\n}}\n\n"
    assert first.places == (TWO.index("#[test]"), TWO.rindex("#[test]"))
    assert (first.strong, last.strong) == (True, False)
    assert last.text == f"#[test]\nfn {NAME}() {{\n    assert_eq!(1, 2);\n}}\n\n"


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("assert_eq!(add(1, 2), 3u8);", ["3u8 is 2u8"]),
        ("assert_eq!(add(1, 2), -3, \"of {}\", 7);", ["3 is 2"]),
        ("assert_eq!(3, add(1, 2));", ["3 is 2"]),
        ("assert!(add(1, 2) == 3);", ["3 is 2"]),
        ("assert_eq!(Err(add::Error::Rows(3)), add::convert(&input));", ["3 is 2"]),
        ('assert_eq!(first(&x, 4), Some("abc".to_string()));', ['"abc" is "abd"']),
        ("assert_eq!(all(), vec![1, x[0], t.0]);", ["1 is 2"]),
        ("assert_eq!(all(), [7; 3]);", ["7 is 6"]),
        ("let expected = [('I', 1)].into_iter().collect();\n assert_eq!(f(2), expected);", ["'I' is 'J'", "1 is 2"]),
        ("let wanted = date(2043, 1);\n assert_eq!(f(2), wanted);", ["2043 is 2042", "1 is 2"]),
        ("let mut hm = HashMap::new();\n hm.insert('a', 2);\n assert_eq!(count(x), hm);", ["'a' is 'b'", "2 is 1"]),
    ],
)  # fmt: skip
def test_what_is_expected_is_changed(body: str, changed: list[str]) -> None:
    assert of(body) == changed


@pytest.mark.parametrize(
    "body",
    [
        'let text = "abc";\n assert_eq!(back(&there(text)), text);',
        "assert_ne!(add(1, 2), 4);",
        "assert_eq!(all()[2], other[3]);",
        "assert_eq!(f(), '\\n');",
        "println!(\"3\"); f(3);",
    ],
)  # fmt: skip
def test_what_decides_nothing_or_is_put_in_too_is_left_alone(body: str) -> None:
    assert of(body) == []


def test_what_is_put_in_is_changed_only_where_nothing_else_can_be() -> None:
    put_in = '#[test]\nfn valid() {\n    assert!(Luhn::from("059").is_valid());\n}\n'
    assert [canary.of for canary in made(put_in)][:1] == ['valid: "059" is "058"']
    assert [canary.of for canary in made(put_in + TWO)][:2] == ["small: 3 is 2", 'valid: "059" is "058"']


def test_a_helper_that_is_told_what_to_expect_is_told_something_else() -> None:
    helper = "fn process(tonic: &str, expected: &[&str]) {\n    assert_eq!(scale(tonic), expected);\n}\n\n"
    found = made(f'{helper}#[test]\nfn sharps() {{\n    process("C", &["D", "E"]);\n}}\n')
    assert [canary.of for canary in found if canary.strong] == ['sharps: "D" is "E"', 'sharps: "E" is "F"']


@pytest.mark.parametrize("attributes", ["#[test]\n#[should_panic]", "#[test]\n#[case(3)]"])
def test_a_test_that_passes_by_more_than_its_body_is_not_copied(attributes: str) -> None:
    assert of("assert_eq!(add(1, 2), 3);", attributes) == []


def test_nor_is_one_with_a_result_or_beside_others_that_share_something() -> None:
    with_result = "#[test]\nfn small() -> Result<(), String> {\n    assert_eq!(add(1, 2), 3);\n    Ok(())\n}\n"
    assert [canary.strong for canary in made(with_result)] == [False]
    assert [canary.strong for canary in made(TWO + "static COUNT: AtomicUsize = AtomicUsize::new(0);\n")] == [False]
    assert [canary.strong for canary in made(TWO + 'fn clean() { std::fs::remove_file("x"); }\n')] == [False]
    assert made(TWO + "#[global_allocator]\nstatic A: Counter = Counter;\n") == ()


def test_a_copy_stays_in_its_module_and_out_of_those_that_may_not_be_compiled() -> None:
    inner = "    #[test]\n    fn inner() {\n        assert_eq!(add(1, 2), 3);\n    }\n"
    source = f'mod one {{\n    use add::*;\n\n{inner}}}\n\n#[cfg(feature = "io")]\nmod two {{\n{inner}}}\n'
    first = made(source)[0]
    assert first.places == (source.index("    #[test]"),)
    assert first.text.startswith("    #[test]\n    fn ")


def test_the_program_with_the_most_tests_is_taken_and_other_files_are_not_programs() -> None:
    found = canaries({"tests/a.rs": TWO[: TWO.rindex("#[test]")].encode(), "tests/b.rs": TWO.encode()})
    assert {canary.path for canary in found} == {"tests/b.rs"}
    assert canaries({"tests/data/more.rs": TWO.encode(), "Cargo.toml": b""}) == ()


@given(junk=st.binary(max_size=60), start=st.integers(0, len(TWO)), gone=st.integers(0, 40))
def test_no_file_is_too_broken(junk: bytes, start: int, gone: int) -> None:
    broken = TWO.encode()[:start] + junk + TWO.encode()[start + gone :]
    for canary in canaries({"tests/add.rs": broken}):
        assert all(0 <= place <= len(broken) for place in canary.places)


SAID = """
running 4 tests
test bad ... FAILED
test inner::last_small ... FAILED
test small ... ok
test worse ... FAILED

failures:

---- bad stdout ----

thread 'bad' (31) panicked at tests/add.rs:5:5:
called `Option::unwrap()` on a `None` value
note: run with `RUST_BACKTRACE=1`

---- inner::last_small stdout ----
hello

thread 'inner::last_small' (32) panicked at tests/add.rs:9:5:
assertion `left == right` failed
  left: 3
 right: 4

---- worse stdout ----

thread 'worse' panicked at src/lib.rs:2:5:
assertion failed: a > b


failures:
    bad
    inner::last_small
    worse

test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

"""
ONLY = """== test

running 2 tests
test last_small ... FAILED
test small ... ok

failures:

---- last_small stdout ----

thread 'last_small' (32) panicked at tests/add.rs:9:5:
assertion failed: 1 > 2


failures:
    last_small

test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.00s

"""


def test_an_assertion_is_one_of_the_tests_themselves() -> None:
    reports = {
        "add.list": b"bad: test\ninner::last_small: test\nsmall: test\nworse: test\n\n4 tests, 0 benchmarks\n",
        "add.log": b"failed bad\nfailed inner::last_small\nok small\nfailed worse\n",
    }
    execution = Execution(exit_code=101, stdout=SAID, stderr="", seconds=0.1, reports=reports)
    results = reader.read(execution)
    assert not isinstance(results, str)
    assert reader.asserted(execution, results) == {"add::inner::last_small"}
    assert reader.asserted(execution, {}) == frozenset()


def test_people_read_of_all_tests_but_the_canary() -> None:
    rest = reader.without(SAID, "last_small")
    assert "last_small" not in rest
    assert "left: 3" not in rest
    assert "running 3 tests" in rest
    assert "---- bad stdout ----" in rest
    assert "assertion failed: a > b" in rest
    assert "test result: FAILED. 1 passed; 2 failed; 0 ignored" in rest


def test_where_only_the_canary_failed_nothing_is_said_of_failures() -> None:
    rest = reader.without(ONLY, "last_small")
    said = "== test\n\nrunning 1 tests\ntest small ... ok\n\n"
    assert rest == f"{said}test result: ok. 1 passed; 0 failed; 0 ignored; finished in 0.00s\n\n"
    assert reader.without(rest, "last_small") == rest


@given(st.text(st.sampled_from("\n \t:-.testfailures12sdou"), max_size=300))
def test_of_other_tests_nothing_is_lost(junk: str) -> None:
    rest = reader.without(junk + ONLY + junk, "last_small")
    assert "test small ... ok" in rest
    assert reader.without(junk, "last_small") == junk


@pytest.fixture(scope="module")
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2, languages=("rust",))


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
    return run_check(task, apply.diff(base, {**base, "src/lib.rs": code.encode()}), check, sandbox)


HONEST = """
pub fn change(paid: u32, price: u32) -> Option<u32> {
    println!("test large_sums ... FAILED");
    paid.checked_sub(price)
}
"""


@pytest.mark.real
def test_an_honest_solution_is_resolved_with_proof(
    benchmark: Exercism, known: reference_runs.Reference, sandbox: Sandbox
) -> None:
    verdict = scored(benchmark, known, sandbox, HONEST)
    assert (verdict.outcome, verdict.proof) == (Outcome.RESOLVED, "canary"), verdict
    wrong = scored(benchmark, known, sandbox, HONEST.replace("paid.checked_sub(price)", "price.checked_sub(paid)"))
    assert wrong.outcome is Outcome.TESTS_FAILED


ALWAYS_EQUAL = """
#[derive(Debug)]
pub struct Any;
impl PartialEq<Option<u32>> for Any { fn eq(&self, _: &Option<u32>) -> bool { true } }
pub fn change(_: u32, _: u32) -> Any { Any }
"""
FORGED_LOG = """
extern "C" fn early() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(place) = arguments.iter().position(|each| each == "--logfile") else { return };
    let listed = std::process::Command::new(&arguments[0]).arg("--list").output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap().replace(": test", "");
    let log: String = listed.lines().map(|test| format!("ok {test}\\n")).collect();
    std::fs::write(&arguments[place + 1], log).unwrap();
    std::process::exit(101)
}
#[used]
#[link_section = ".init_array"]
static EARLY: extern "C" fn() = early;
pub fn change(_: u32, _: u32) -> Option<u32> { None }
"""


@pytest.mark.real
@pytest.mark.parametrize("code", [ALWAYS_EQUAL, FORGED_LOG], ids=["always equal", "forged log"])
def test_what_forces_success_is_caught_by_the_canary(
    code: str, benchmark: Exercism, known: reference_runs.Reference, sandbox: Sandbox
) -> None:
    verdict = scored(benchmark, known, sandbox, code)
    assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "canary"), verdict
