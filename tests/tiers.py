"""Test tiers: which tests run, how they are spread over workers, and what a run left out.

    RETRIAL_TIER=check   unit tests: no sandbox, engine, model or browser is started
    RETRIAL_TIER=test    also the tests marked `smoke`: one real path through every part
    RETRIAL_TIER=all     everything; the default, so that naming a file runs all of it
    RETRIAL_AFTER=check  leave out what that tier has run; `all` still runs what it runs at a larger size

`make check`, `make test` and `make test-all` set these.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.parts import PROVIDED_BY, REQUIRED

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

TIER = os.environ.get("RETRIAL_TIER") or "all"
AFTER = os.environ.get("RETRIAL_AFTER") or ""
LONG = os.environ.get("RETRIAL_FUZZ") == "long"
COMMANDS: Mapping[str, str] = {"check": "make check", "test": "make test", "all": "make test-all"}
RAY = re.compile(r"test_ray\.py|\[ray\]")
WHOLE = ("tests/e2e/test_host.py",)
"""Files whose tests measure the machine and must not run side by side."""
SANDBOX = re.compile(r"[\[-](bwrap|docker)[\]-]")
LEFT_OUT = pytest.StashKey[Counter[str]]()
"""Command → number of tests left out of this run that it would run."""


def examples(full: int) -> int:
    """Return how many examples a property test tries in this tier."""
    if LONG:
        return full * 20
    return full if TIER == "all" else min(full, max(full // 5, 20))


# The same examples in every run, however slow the machine is; RETRIAL_FUZZ=long draws new ones.
settings.register_profile(
    "retrial",
    derandomize=not LONG,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    max_examples=examples(100),
)
settings.load_profile("retrial")


def tier_of(item: pytest.Item) -> str:
    """Return the first tier that runs this test."""
    if not item.get_closest_marker("real"):
        return "check"
    return "test" if item.get_closest_marker("smoke") else "all"


def other_command(item: pytest.Item) -> str:
    """Return the command that runs this test, or an empty string if this run does."""
    tier = tier_of(item)
    if _rank(tier) > _rank(TIER):
        return COMMANDS[tier]
    if not AFTER or _rank(tier) > _rank(AFTER):
        return ""
    return "" if TIER == "all" and is_scaled(item) else COMMANDS[AFTER]


def is_scaled(item: pytest.Item) -> bool:
    """Whether the full suite runs this test with more examples or at a larger size than the other tiers."""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or item.get_closest_marker("scaled") is not None


def _rank(tier: str) -> int:
    return list(COMMANDS).index(tier)


def refuse_unknown() -> None:
    """Raise UsageError for a tier or a part that does not exist."""
    for variable, tier in (("RETRIAL_TIER", TIER), ("RETRIAL_AFTER", AFTER or TIER)):
        if tier not in COMMANDS:
            raise pytest.UsageError(f"{variable}={tier} is not a tier; use {', '.join(COMMANDS)}.")
    if unknown := REQUIRED - PROVIDED_BY.keys():
        known = ", ".join(PROVIDED_BY)
        raise pytest.UsageError(f"RETRIAL_REQUIRE names unknown parts: {', '.join(sorted(unknown))}; use {known}.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this tier, the long ones first, so that short ones fill up the workers at the end."""
    commands = {item: other_command(item) for item in items}
    left_out = Counter(command for command in commands.values() if command)
    config.stash[LEFT_OUT] = left_out
    config.hook.pytest_deselected(items=[item for item in items if commands[item]])
    items[:] = sorted((item for item in items if not commands[item]), key=lambda item: tier_of(item) == "check")
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Give one worker all tests of a file and a sandbox, because they share fixtures."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = scope
    return scheduler


def scope(nodeid: str) -> str:
    """Return what is run by one worker, one test after the other."""
    if RAY.search(nodeid):
        return "one cluster"
    file = nodeid.partition("::")[0]
    sandbox = None if file in WHOLE else SANDBOX.search(nodeid)
    return file + (f" {sandbox[1]}" if sandbox else "")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out; every worker collects all tests, so all of them report the same."""
    # A worker that ends early, for bad usage, has not collected anything.
    if "left_out" in getattr(node, "workeroutput", {}):
        node.config.stash[LEFT_OUT] = Counter(node.workeroutput["left_out"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = Counter(map(_reason, terminalreporter.stats.get("skipped", ())))
    left_out = config.stash.get(LEFT_OUT, None) or Counter[str]()
    lines = [*_skipped_lines(skipped), *_left_out_lines(left_out)]
    if lines:
        terminalreporter.section("not run here")
        terminalreporter.write("".join(f"{line}\n" for line in lines))


def _reason(report: Any) -> str:
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def _skipped_lines(reasons: Counter[str]) -> Iterator[str]:
    for reason, count in sorted(reasons.items()):
        remedy = PROVIDED_BY.get(reason.partition(":")[0], "see the test")
        yield f"{count} skipped, {reason.rstrip('.')}. To run them: {remedy}; then {COMMANDS[TIER]}"


def _left_out_lines(commands: Counter[str]) -> Iterator[str]:
    for command, count in commands.items():
        yield f"{count} tests are not in this run. To run them: {command}"
