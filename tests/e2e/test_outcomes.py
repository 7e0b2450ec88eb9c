"""Every way to go wrong has an outcome and a reason of its own, in every language."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.grading.run_check import run_check
from retrial.patches.apply import diff
from retrial.types import Outcome, Verdict
from tests.parts import ready

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
        """\
def add(:
""",
        Outcome.BUILD_FAILED,
        "could not be loaded: .*SyntaxError",
    ),
    "python: a hang": Case(
        "python/sum-two",
        """\
def add(a, b):
    while True:
        pass
""",
        *HANG,
    ),
    "python: an exit at once": Case(
        "python/sum-two",
        """\
import os
os._exit(0)
""",
        Outcome.BUILD_FAILED,
        "no report .exit status 0",
    ),
    "javascript: no code": Case(
        "javascript/coin-jar",
        """\
export const total = (;
""",
        Outcome.BUILD_FAILED,
        "could not be loaded: .*SyntaxError",
    ),
    "javascript: an error in every test": Case(
        "javascript/coin-jar",
        """\
export const total = () => { throw new Error('no'); };
""",
        Outcome.TESTS_FAILED,
        "4 of 4 tests did not pass",
    ),
    "javascript: a hang": Case(
        "javascript/coin-jar",
        """\
export const total = () => { for (;;); };
""",
        *HANG,
    ),
    "javascript: an exit at once": Case(
        "javascript/coin-jar",
        """\
process.exit(0);
export const total = () => 1;
""",
        Outcome.BUILD_FAILED,
        "no report|could not be loaded",
    ),
    "go: a type error": Case(
        "go/warm-days",
        """\
package warmdays

func CountAbove(t []float64, limit float64) int { return "none" }
""",
        Outcome.BUILD_FAILED,
        r"the build failed with status 1: .*warm_days.go:3:\d+: cannot use",
    ),
    "go: a panic": Case(
        "go/warm-days",
        """\
package warmdays

func CountAbove(t []float64, limit float64) int { panic("no") }
""",
        Outcome.TESTS_FAILED,
        "TestCountAbove",
    ),
    "go: a hang": Case(
        "go/warm-days",
        """\
package warmdays

func CountAbove(t []float64, limit float64) int {
	for {
	}
}
""",
        *HANG,
    ),
    "go: an exit at once": Case(
        "go/warm-days",
        """\
package warmdays

import "os"

func init() { os.Exit(0) }

func CountAbove(t []float64, limit float64) int { return 0 }
""",
        Outcome.BUILD_FAILED,
        "no tests were found",
    ),
    "rust: a type error": Case(
        "rust/spare-change",
        """\
pub fn change(_: u32, _: u32) -> Option<u32> {
    42
}
""",
        Outcome.BUILD_FAILED,
        r"the build failed with status 101: .*error\[E0308\]",
    ),
    "rust: a panic in every test": Case(
        "rust/spare-change",
        """\
pub fn change(_: u32, _: u32) -> Option<u32> {
    panic!("no")
}
""",
        Outcome.TESTS_FAILED,
        "5 of 5 tests did not pass",
    ),
    "rust: a hang": Case(
        "rust/spare-change",
        """\
pub fn change(_: u32, _: u32) -> Option<u32> {
    loop {}
}
""",
        *HANG,
    ),
    "rust: an endless build": Case(
        "rust/spare-change",
        """\
#![allow(long_running_const_eval)]
pub const X: u64 = {
    let mut i = 1u64;
    while i != 0 {
        i = i % 7 + 1;
    }
    i
};
pub fn change(_: u32, _: u32) -> Option<u32> {
    Some(X as u32)
}
""",
        *ENDLESS_BUILD,
    ),
    "rust: an exit in a test": Case(
        "rust/spare-change",
        """\
pub fn change(_: u32, _: u32) -> Option<u32> {
    std::process::exit(0)
}
""",
        Outcome.BUILD_FAILED,
        "",
    ),
    "java: a type error": Case(
        "java/front-desk",
        """\
class FrontDesk {
    String greet(String name) {
        return 42;
    }
}
""",
        Outcome.BUILD_FAILED,
        "the build failed with status 1: .*FrontDesk.java.*incompatible types",
    ),
    "java: an error in every test": Case(
        "java/front-desk",
        """\
class FrontDesk {
    String greet(String name) {
        throw new IllegalStateException("no");
    }
}
""",
        Outcome.TESTS_FAILED,
        "4 of 4 tests did not pass",
    ),
    "java: a hang": Case(
        "java/front-desk",
        """\
class FrontDesk {
    String greet(String name) {
        while (true) { }
    }
}
""",
        *HANG,
    ),
    "java: an exit in a test": Case(
        "java/front-desk",
        """\
class FrontDesk {
    String greet(String name) {
        System.exit(0);
        return name;
    }
}
""",
        Outcome.BUILD_FAILED,
        "",
    ),
    "cpp: a type error": Case(
        "cpp/ticket-price",
        """\
#include "ticket_price.h"
int ticket_price::price(int) { return "none"; }
""",
        Outcome.BUILD_FAILED,
        r"the build failed with status 2: .*ticket_price.cpp:2:\d+: error:",
    ),
    "cpp: an exception in every test": Case(
        "cpp/ticket-price",
        """\
#include "ticket_price.h"
int ticket_price::price(int) { throw 42; }
""",
        Outcome.TESTS_FAILED,
        "tests did not pass",
    ),
    "cpp: a hang": Case(
        "cpp/ticket-price",
        """\
#include "ticket_price.h"
int ticket_price::price(int age) {
    volatile int i = age;
    while (true) i = i + 1;
}
""",
        *HANG,
    ),
    "cpp: an endless build": Case(
        "cpp/ticket-price",
        """\
constexpr int spin(int x) { for (int i = 0; i < 200000; ++i) x = (x * 31 + i) % 1000; return x; }
template <int N> struct Spin { static constexpr int v = spin(N) + Spin<N - 1>::v % 2; };
template <> struct Spin<0> { static constexpr int v = 0; };
int ticket_price::price(int) { return Spin<800>::v; }
""",
        *ENDLESS_BUILD,
    ),
    "cpp: a crash": Case(
        "cpp/ticket-price",
        """\
#include "ticket_price.h"
#include <csignal>
int ticket_price::price(int) { std::raise(SIGKILL); return 0; }
""",
        Outcome.BUILD_FAILED,
        "no report .exit status 137",
    ),
    "cpp: an exit at once": Case(
        "cpp/ticket-price",
        """\
#include "ticket_price.h"
#include <cstdlib>
static int gone = (std::_Exit(0), 0);
int ticket_price::price(int) { return gone; }
""",
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
