"""Every way to go wrong has an outcome and a reason of its own, in every language."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import run_check
from retrial.patches import diff
from retrial.types import Outcome, Verdict
from tests.conftest import ready

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Case:
    task: str
    content: str
    outcome: Outcome
    reason: str
    """Matches the sentence that users read."""
    seconds: float = 0.0
    """In place of the language's own limit."""


HANG = Outcome.TIMED_OUT, "the tests did not end within 15 s", 15.0
ENDLESS_BUILD = Outcome.TIMED_OUT, "the build did not end within 15 s", 15.0

CASES = {
    "python: no code": Case(
        "python/sum-two",
        "def add(:\n",
        Outcome.BUILD_FAILED,
        "could not be loaded: .*SyntaxError",
    ),
    "python: a hang": Case("python/sum-two", "def add(a, b):\n    while True:\n        pass\n", *HANG),
    "python: an exit at once": Case(
        "python/sum-two", "import os\nos._exit(0)\n", Outcome.BUILD_FAILED, "no report .exit status 0"
    ),
    "javascript: no code": Case(
        "javascript/coin-jar", "export const total = (;\n", Outcome.BUILD_FAILED, "could not be loaded: .*SyntaxError"
    ),
    "javascript: an error in every test": Case(
        "javascript/coin-jar",
        "export const total = () => { throw new Error('no'); };\n",
        Outcome.TESTS_FAILED,
        "4 of 4 tests did not pass",
    ),
    "javascript: a hang": Case("javascript/coin-jar", "export const total = () => { for (;;); };\n", *HANG),
    "javascript: an exit at once": Case(
        "javascript/coin-jar",
        "process.exit(0);\nexport const total = () => 1;\n",
        Outcome.BUILD_FAILED,
        "no report|could not be loaded",
    ),
    "go: a type error": Case(
        "go/warm-days",
        'package warmdays\n\nfunc CountAbove(t []float64, limit float64) int { return "none" }\n',
        Outcome.BUILD_FAILED,
        r"the build failed with status 1: .*warm_days.go:3:\d+: cannot use",
    ),
    "go: a panic": Case(
        "go/warm-days",
        'package warmdays\n\nfunc CountAbove(t []float64, limit float64) int { panic("no") }\n',
        Outcome.TESTS_FAILED,
        "TestCountAbove",
    ),
    "go: a hang": Case(
        "go/warm-days",
        "package warmdays\n\nfunc CountAbove(t []float64, limit float64) int {\n\tfor {\n\t}\n}\n",
        *HANG,
    ),
    "go: an exit at once": Case(
        "go/warm-days",
        'package warmdays\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\n'
        "func CountAbove(t []float64, limit float64) int { return 0 }\n",
        Outcome.BUILD_FAILED,
        "no tests were found",
    ),
    "rust: a type error": Case(
        "rust/spare-change",
        "pub fn change(_: u32, _: u32) -> Option<u32> {\n    42\n}\n",
        Outcome.BUILD_FAILED,
        r"the build failed with status 101: .*error\[E0308\]",
    ),
    "rust: a panic in every test": Case(
        "rust/spare-change",
        'pub fn change(_: u32, _: u32) -> Option<u32> {\n    panic!("no")\n}\n',
        Outcome.TESTS_FAILED,
        "5 of 5 tests did not pass",
    ),
    "rust: a hang": Case(
        "rust/spare-change",
        "pub fn change(_: u32, _: u32) -> Option<u32> {\n    loop {}\n}\n",
        *HANG,
    ),
    "rust: an endless build": Case(
        "rust/spare-change",
        "#![allow(long_running_const_eval)]\npub const X: u64 = {\n    let mut i = 1u64;\n    while i != 0 {\n        i = i % 7 + 1;\n    }\n"
        "    i\n};\npub fn change(_: u32, _: u32) -> Option<u32> {\n    Some(X as u32)\n}\n",
        *ENDLESS_BUILD,
    ),
    "rust: an exit in a test": Case(
        "rust/spare-change",
        "pub fn change(_: u32, _: u32) -> Option<u32> {\n    std::process::exit(0)\n}\n",
        Outcome.BUILD_FAILED,
        "",
    ),
    "java: a type error": Case(
        "java/front-desk",
        "class FrontDesk {\n    String greet(String name) {\n        return 42;\n    }\n}\n",
        Outcome.BUILD_FAILED,
        r"the build failed with status 1: .*FrontDesk.java.*incompatible types",
    ),
    "java: an error in every test": Case(
        "java/front-desk",
        'class FrontDesk {\n    String greet(String name) {\n        throw new IllegalStateException("no");\n    }\n}\n',
        Outcome.TESTS_FAILED,
        "4 of 4 tests did not pass",
    ),
    "java: a hang": Case(
        "java/front-desk",
        "class FrontDesk {\n    String greet(String name) {\n        while (true) { }\n    }\n}\n",
        *HANG,
    ),
    "java: an exit in a test": Case(
        "java/front-desk",
        "class FrontDesk {\n    String greet(String name) {\n        System.exit(0);\n        return name;\n    }\n}\n",
        Outcome.BUILD_FAILED,
        "",
    ),
    "cpp: a type error": Case(
        "cpp/ticket-price",
        '#include "ticket_price.h"\nint ticket_price::price(int) { return "none"; }\n',
        Outcome.BUILD_FAILED,
        r"the build failed with status 2: .*ticket_price.cpp:2:\d+: error:",
    ),
    "cpp: an exception in every test": Case(
        "cpp/ticket-price",
        '#include "ticket_price.h"\nint ticket_price::price(int) { throw 42; }\n',
        Outcome.TESTS_FAILED,
        "tests did not pass",
    ),
    "cpp: a hang": Case(
        "cpp/ticket-price",
        '#include "ticket_price.h"\nint ticket_price::price(int age) {\n    volatile int i = age;\n    while (true) i = i + 1;\n}\n',
        *HANG,
    ),
    "cpp: an endless build": Case(
        "cpp/ticket-price",
        "template <int N, int M> struct B { static constexpr int v = B<N - 1, M * 2>::v + B<N - 1, M * 2 + 1>::v; };\n"
        "template <int M> struct B<0, M> { static constexpr int v = M; };\n"
        "int ticket_price::price(int) { return B<24, 1>::v; }\n",
        *ENDLESS_BUILD,
    ),
    "cpp: a crash": Case(
        "cpp/ticket-price",
        '#include "ticket_price.h"\n#include <csignal>\nint ticket_price::price(int) { std::raise(SIGKILL); return 0; }\n',
        Outcome.BUILD_FAILED,
        "no report .exit status 137",
    ),
    "cpp: an exit at once": Case(
        "cpp/ticket-price",
        '#include "ticket_price.h"\n#include <cstdlib>\nstatic int gone = (std::_Exit(0), 0);\n'
        "int ticket_price::price(int) { return gone; }\n",
        Outcome.BUILD_FAILED,
        "no report .exit status 0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_said_what_went_wrong(name: str) -> None:
    case = CASES[name]
    verdict = judged(case)
    assert verdict.outcome is case.outcome, verdict
    assert re.search(case.reason, verdict.reason), verdict.reason


def judged(case: Case) -> Verdict:
    language = registry.module("languages", case.task.partition("/")[0]).make()
    sandbox = ready("bwrap", language.environment)
    benchmark = Exercism(DEMO, "demo")
    (task,) = (task for task in benchmark.tasks() if case.task in task.aliases)
    base = task.tree.files()
    patch = diff(base, {**base, task.editable[0]: case.content.encode()})
    check = benchmark.answer(task.instance_id).check
    return run_check(task, patch, replace(check, timeout=case.seconds or check.timeout), sandbox)
