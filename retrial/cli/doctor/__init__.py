"""report.py --doctor: what this machine has, what its sandboxes hold, and what to mend. Changes nothing."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from functools import partial

from retrial import registry
from retrial.cli.doctor import host, sandboxes
from retrial.cli.doctor.host import Check, Diagnosis, InspectedHost, State
from retrial.errors import ExitCode
from retrial.options import ReportOptions
from retrial.protocols import Context, Executor
from retrial.reports.terminal import table
from retrial.sandboxes import PREFERRED
from retrial.system.console import pluralise, say

WORKERS = 4
SHOWN = 160
"""Characters of what was found."""


def examine(options: ReportOptions) -> int:
    """1 when something keeps a default run from working.

    Raises: UsageError for a sandbox that does not exist.
    """
    found = _ask_all(_machine(options))
    print(_rendered(found))
    return ExitCode.NOT_MEASURED if any(each.state is State.PROBLEM for each in found) else ExitCode.DONE


def _machine(options: ReportOptions) -> InspectedHost:
    names = PREFERRED if options.sandbox == "auto" else (options.sandbox,)
    if names[0] not in registry.names("sandboxes"):
        # Says so, and which there are.
        registry.module("sandboxes", names[0])
    machine = InspectedHost(options=options, useless={})
    environment = sandboxes.language("python").environment
    asked = dict(_executor().run(lambda name: machine.open(name).unavailable((environment,)), names))
    return InspectedHost(options=options, useless={name: _said(asked[name]).rstrip(".") for name in names})


def _said(answer: str | Exception) -> str:
    return str(answer) or (type(answer).__name__ if isinstance(answer, Exception) else "")


def _checks() -> dict[str, Check]:
    """By a name to show while they run, in the order of the table."""
    return {
        "Python": host.python,
        "packages": host.packages,
        "model keys": host.keys,
        "local model": host.local_model,
        "sandbox": sandboxes.sandbox,
        "docker": sandboxes.docker,
        "bwrap": sandboxes.bubblewrap,
        **{f"limits: {name}": partial(sandboxes.limits, name) for name in PREFERRED},
        **{f"host: {name}": partial(sandboxes.toolchain, name) for name in registry.names("languages")},
        "disk": host.disk,
        "memory, cores": host.memory,
    }


def _ask_all(machine: InspectedHost) -> list[Diagnosis]:
    """Side by side. A check that fails itself is a finding: the others go on."""
    checks = _checks()
    found: dict[str, Sequence[Diagnosis]] = {}
    for name, result in _executor().run(lambda name: tuple(checks[name](machine)), checks):
        found[name] = (_broken(name, result),) if isinstance(result, Exception) else result
        say(f"doctor {len(found)}/{len(checks)}: {name}")
    return [each for name in checks for each in found.get(name, ())]


def _executor() -> Executor:
    executor: Executor = registry.module("executors", "local").make(Context(options=None, workers=WORKERS))
    return executor


def _broken(name: str, error: Exception) -> Diagnosis:
    said = f"could not be looked at: {type(error).__name__}: {error}"
    return Diagnosis(about=name, state=State.PROBLEM, found=said, fix="mend what it says, and ask again")


def _rendered(found: Sequence[Diagnosis]) -> str:
    rows = []
    for each in found:
        rows.append((each.about, str(each.state), textwrap.shorten(each.found, SHOWN, placeholder=" …")))
        rows += [("", "", f"-> {each.fix}")] if each.fix else []
    states = Counter(each.state for each in found)
    problems, warnings = pluralise(states[State.PROBLEM], "problem"), pluralise(states[State.WARNING], "warning")
    verdict = "A default run works here" if not states[State.PROBLEM] else "A default run does not work here"
    return f"{table(('check', 'state', 'found'), rows)}\n\n{verdict}: {problems}, {warnings}."
