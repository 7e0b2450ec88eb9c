"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

from collections.abc import Sequence

from retrial.cli import arguments
from retrial.options import HarnessOptions
from retrial.predict.metering import recording
from retrial.predict.plan import make_ladder, make_plan
from retrial.predict.run import run_plan, sandbox_for
from retrial.sandboxes.prepare import remove_orphans
from retrial.system import scratch

DESCRIPTION = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."


def main(argv: Sequence[str]) -> int:
    options, _ = arguments.parse(HarnessOptions, argv, DESCRIPTION, complete=recording.complete)
    scratch.refuse_missing()
    remove_orphans()
    if options.repeat > 1:
        from retrial.predict import repeats

        return repeats.run(options, argv)
    if options.grid:
        from retrial.predict import grid

        return grid.run(options, argv)
    plan = make_plan(options, argv)
    if options.dry_run:
        from retrial.predict import dry_run

        return dry_run.show(plan, sandbox_for(plan))
    return run_plan(plan, make_ladder(plan), sandbox_for(plan))
