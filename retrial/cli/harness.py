"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrial.errors import ExitCode
from retrial.options import HarnessOptions
from retrial.predict.plan import make_ladder, make_plan
from retrial.predict.run import RunEnd, run_plan, sandbox_for
from retrial.reports import terminal
from retrial.sandboxes.prepare import remove_orphans
from retrial.system.console import NOTE, say
from retrial.system.files import refuse_missing_scratch

SHOWN = 10


def main(options: HarnessOptions, argv: Sequence[str]) -> int:
    refuse_missing_scratch()
    remove_orphans()
    if options.repeat > 1 or options.grid:
        return _run_group(options, argv)
    plan = make_plan(options, argv)
    if options.dry_run:
        from retrial.predict import dry_run

        return _print_lines(dry_run.lines(plan, sandbox_for(plan)))
    return _print_end(run_plan(plan, make_ladder(plan), sandbox_for(plan)))


def _run_group(options: HarnessOptions, argv: Sequence[str]) -> int:
    """Return the worst exit code of its runs."""
    from retrial.predict import groups

    several = groups.make_group(options, argv)
    if options.dry_run:
        return _print_lines(groups.dry_run_lines(several))
    worst = max(map(_print_end, groups.run_group(several)))
    print(f"{several.kind.capitalize()}: {several.group.folder}")
    if note := groups.identical_note(several):
        say(f"{NOTE}{note}")
    return worst


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return ExitCode.DONE


def _print_end(end: RunEnd) -> int:
    """Print the outcome of one run; return its exit code."""
    if end.agent_failed:
        hint = "Check the agent's command, --agent-path and its keys, then run the same command again."
        print(f"{end.agent_failed}\n{hint}\n")
    if end.ladder:
        print(terminal.ladder(end.ladder, scored=False) + "\n")
    for change in end.served_changes:
        print(change)
    print(f"Predictions: {end.folder}")
    if end.unmeasured:
        print(f"Not measured: {len(end.unmeasured)} of {end.tasks} tasks; the same command does them again.")
        # Where one question of a run that is played again differs, most do: the first says why.
        shown = 1 if end.replayed else SHOWN
        for instance_id, why in sorted(end.unmeasured.items())[:shown]:
            print(f"  {instance_id}: {why}")
        if len(end.unmeasured) > shown:
            print(f"  and {len(end.unmeasured) - shown} more")
    return end.exit_code
