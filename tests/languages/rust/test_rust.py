"""Rust: which part of a manifest counts, what its test programs say, and what a patch may add."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.errors import TreeError
from retrial.grading.run_check import run_check
from retrial.language import Suite
from retrial.languages.rust import make
from retrial.languages.rust import results as reader
from retrial.patches import apply, policy
from retrial.protocols import Sandbox
from retrial.types import Execution, Outcome, Status, Task, Verdict
from tests.parts import ready

MANIFEST = '# Ours.\n[package]\nname = "x"\nversion = "1.0.0"\n\n[lints.clippy]\nnew_without_default = "allow"\n'
CRATES = '[dependencies]\nanyhow = "1.0"\n'


def admitted(before: str, after: str) -> str:
    return make().admitted(before.encode(), after.encode()).decode()


@pytest.mark.parametrize(
    "crates",
    [
        CRATES,
        '[dependencies.rand]\nversion = "0.8"\ndefault-features = false\nfeatures = ["std"]\noptional = true\n',
        'dependencies.time = { version = "0.3" }\n',
    ],
)
def test_crates_may_be_added_and_the_file_is_left_as_it_was_written(crates: str) -> None:
    after = crates + MANIFEST
    assert admitted(MANIFEST, after) == after


def test_crates_may_be_changed_and_removed() -> None:
    before = MANIFEST + CRATES + 'rand = "0.8"\n'
    after = MANIFEST + CRATES.replace("1.0", "1.0.50")
    assert admitted(before, after) == after
    assert admitted(before, MANIFEST) == MANIFEST


@pytest.mark.parametrize(
    "after",
    [
        "",
        MANIFEST + "[dependencies]\n",
        MANIFEST.replace("1.0.0", "2.0.0") + '[profile.dev]\nopt-level = 3\n[package.metadata]\na = "b"\n',
        MANIFEST + '[dev-dependencies]\nrand = "0.8"\n[build-dependencies]\nrand = "0.8"\n',
        MANIFEST + "[target.'cfg(unix)'.dependencies]\nrand = \"0.8\"\n[features]\ndefault = []\n",
        MANIFEST + '[[test]]\nname = "x"\nharness = false\n[lib]\npath = "other.rs"\n[patch.crates-io]\na.path = "a"\n',
        MANIFEST + "dependencies = [\n",
        MANIFEST + 'dependencies = ["rand"]\n',
    ],
)
def test_nothing_else_counts(after: str) -> None:
    assert admitted(MANIFEST, after) == MANIFEST


@pytest.mark.parametrize("after", [b"\xff\xfe", b"[" * 100_000, b"a = " + b"[" * 100_000, b"a = 1\na = 2\n"])
def test_what_is_no_toml_does_not_count(after: bytes) -> None:
    assert make().admitted(MANIFEST.encode(), after) == MANIFEST.encode()


@pytest.mark.parametrize(
    "crate",
    [
        'x = { path = "x" }',
        'x = { version = "1", path = "x" }',
        'x = { git = "https://example.invalid/x" }',
        'x = { version = "1", registry = "other" }',
        'x = { version = "1", package = "y" }',
        "x = { workspace = true }",
        "x = { version = 1 }",
        'x = { version = "1", default-features = "no" }',
        "x = 1",
        'x.y.version = "1"',
        '"x y" = "1"',
    ],
)
def test_a_crate_from_elsewhere_does_not_count(crate: str) -> None:
    assert admitted(MANIFEST, f"{MANIFEST}[dependencies]\n{crate}\n") == MANIFEST
    with_another = tomllib.loads(admitted(MANIFEST, f'{MANIFEST}[dependencies]\nrand = "0.8"\n{crate}\n'))
    assert with_another == {**tomllib.loads(MANIFEST), "dependencies": {"rand": "0.8"}}


def test_a_crate_that_the_task_itself_has_from_elsewhere_stays() -> None:
    own = MANIFEST + '[dependencies]\nnear = { path = "near" }\n'
    assert admitted(own, own + "# No change.\n") == own
    assert admitted(own, own + 'rand = "0.8"\n') == own + 'rand = "0.8"\n'
    assert admitted(own, own.replace('path = "near"', 'path = "far"')) == own


def test_the_rest_of_a_manifest_survives_being_written_anew() -> None:
    odd = """\
cargo-features = ["a b", 'c"d\\e']
[package]
name = "x"
"quoted key" = { a.b = [1, 2.5, true], "é ü" = "tab\\there \\u007f \\U0001F600" }
[[test]]
name = "one"
[[test]]
name = "two"
harness = true
[profile.dev.package."*"]
opt-level = 1
"""
    after = f'[dependencies]\nrand = "0.8"\nx.path = "x"\n{odd}'
    assert tomllib.loads(admitted(odd, after)) == {**tomllib.loads(odd), "dependencies": {"rand": "0.8"}}


def test_a_reference_may_bring_a_manifest() -> None:
    solution = ("src/lib.rs", "Cargo.toml")
    source, manifest = {".meta/example.rs": b"code"}, {".meta/Cargo-example.toml": b"crates"}
    assert make().reference(solution, source) == {"src/lib.rs": b"code"}
    assert make().reference(solution, {**source, **manifest}) == {"src/lib.rs": b"code", "Cargo.toml": b"crates"}
    with pytest.raises(TreeError):
        make().reference(solution, manifest)


def said(listed: str, log: str | None, target: str = "x") -> Execution:
    reports = {f"{target}.list": listed, **({} if log is None else {f"{target}.log": log})}
    return Execution(
        exit_code=0, stdout="", stderr="", seconds=0.1, reports={name: text.encode() for name, text in reports.items()}
    )


LISTED = "bad: test\ngood: test\ninner::deep: test\nslow: benchmark\n\n3 tests, 1 benchmark\n"


def test_each_test_has_its_own_status() -> None:
    assert reader.read(said(LISTED, "ok good\nfailed bad\nignored: not today inner::deep\n")) == {
        "x::bad": Status.FAILED,
        "x::good": Status.PASSED,
        "x::inner::deep": Status.SKIPPED,
    }


def test_a_message_of_many_lines_stands_before_the_name_of_its_test() -> None:
    log = "failed: panic did not contain expected string\n      panic message: `good`,\n expected: `b` bad\nok good\n"
    found = reader.read(said(LISTED, log))
    assert found == {"x::bad": Status.FAILED, "x::good": Status.PASSED, "x::inner::deep": Status.ERROR}


@pytest.mark.parametrize("log", ["failed bad\nok bad\n", "ok bad\nfailed bad\n"])
def test_of_two_results_the_worse_counts(log: str) -> None:
    assert reader.read(said("bad: test\n\n1 test, 0 benchmarks\n", log)) == {"x::bad": Status.FAILED}


@pytest.mark.parametrize("log", [None, "", "ok good inner::deep\n", "okay bad\nok\nok unknown\n"])
def test_a_test_that_did_not_end_did_not_pass(log: str | None) -> None:
    assert reader.read(said(LISTED, log)) == dict.fromkeys(("x::bad", "x::good", "x::inner::deep"), Status.ERROR)


@pytest.mark.parametrize("listed", ["", "bad: test\n", "bad: test\n1 test"])
def test_a_program_that_did_not_name_its_tests_did_not_pass(listed: str) -> None:
    assert reader.read(said(listed, "ok bad\n")) == {"x": Status.ERROR}


def test_a_program_without_tests_is_no_test() -> None:
    assert reader.read(said("\n0 tests, 0 benchmarks\n", "")) == {}


def test_tests_of_one_name_in_two_programs_are_two() -> None:
    one, two = said("a: test\n\n1 test, 0 benchmarks\n", "ok a\n"), said("a: test\n\n1 test, 0 benchmarks\n", "", "y")
    both = replace(one, reports={**one.reports, **two.reports})
    assert reader.read(both) == {"x::a": Status.PASSED, "y::a": Status.ERROR}


def test_without_a_report_nothing_is_read() -> None:
    assert "no report" in str(reader.read(Execution(exit_code=0, stdout="", stderr="", seconds=0.1)))


def test_only_what_lies_directly_in_the_tests_folder_is_a_program() -> None:
    tests = ("tests/a.rs", "tests/b c.rs", "tests/data/d.rs", "tests/e.txt")
    script = make().script(Suite(solution=("src/lib.rs",), tests=tests, hidden=True))
    assert "--test=a '--test=b c' >" in script
    assert "for target in a 'b c'; do" in script
    assert "== lint" not in script


@pytest.fixture
def benchmark() -> Exercism:
    return Exercism(DEMO, "demo", 2, languages=("rust",))


@pytest.fixture
def task(benchmark: Exercism) -> Task:
    return benchmark.tasks()[0]


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("src/more.rs", True),
        ("build.rs", False),
        ("src/main.rs", False),
        ("src/bin/more.rs", False),
        ("tests/more.rs", False),
        ("benches/more.rs", False),
        ("examples/more.rs", False),
        ("Cargo.lock", False),
        (".cargo/config.toml", False),
        ("rust-toolchain.toml", False),
        ("target/debug/more.rs", False),
    ],
)
def test_a_file_that_cargo_would_pick_up_by_its_name_does_not_count(path: str, counts: bool, task: Task) -> None:
    assert policy.writable(task, path, task.tree.files()) is counts


def test_the_manifest_counts_in_part(task: Task) -> None:
    assert task.partly_editable == ("Cargo.toml",)


@pytest.fixture
def sandbox() -> Sandbox:
    return ready("bwrap", make().environment)


def judged(benchmark: Exercism, sandbox: Sandbox, code: str, crates: str = "", *, script: str = "") -> Verdict:
    """The reference with some code behind it, and some crates."""
    task = benchmark.tasks()[0]
    answer = benchmark.answer(task.instance_id)
    base = task.tree.files()
    files = apply.patched(base, answer.patch).files
    files["src/lib.rs"] += code.encode()
    files["Cargo.toml"] += crates.encode()
    check = replace(answer.check, script=script or answer.check.script)
    return run_check(task, apply.diff(base, files), check, sandbox)


@pytest.mark.real
def test_crates_of_the_store_are_used_as_they_were_compiled(benchmark: Exercism, sandbox: Sandbox) -> None:
    script = benchmark.answer(benchmark.tasks()[0].instance_id).check.script.replace("--quiet ", "")
    code, crates = "\npub fn chance() -> u8 { rand::random() }\n", '\n[dependencies]\nrand = "0.8"\n'
    verdict = judged(benchmark, sandbox, code, crates, script=script)
    assert verdict.outcome is Outcome.RESOLVED, verdict.output
    assert verdict.stderr.count("Compiling") == 1, verdict.stderr


@pytest.mark.real
def test_a_crate_that_is_not_there_is_named(benchmark: Exercism, sandbox: Sandbox) -> None:
    verdict = judged(benchmark, sandbox, "", '\n[dependencies]\nno-such-crate = "1"\n')
    assert verdict.outcome is Outcome.BUILD_FAILED
    assert "no-such-crate" in verdict.reason


AT_LOAD = """
#[used]
#[link_section = ".init_array"]
static GONE: extern "C" fn() = {
    extern "C" fn end() { %s }
    end
};
"""


@pytest.mark.real
@pytest.mark.parametrize(("ending", "status"), [("std::process::exit(0)", 0), ("std::process::abort()", 134)])
def test_a_program_that_ends_before_its_tests_is_no_pass(
    ending: str, status: int, benchmark: Exercism, sandbox: Sandbox
) -> None:
    verdict = judged(benchmark, sandbox, AT_LOAD % ending)
    assert verdict.outcome is Outcome.BUILD_FAILED
    assert f"ended with status {status} before it named its tests" in verdict.reason
