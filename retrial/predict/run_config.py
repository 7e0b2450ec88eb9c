"""run.json of a run of harness.py: what was asked for, by whom, where, with what."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from retrial import __version__
from retrial.agents import about
from retrial.benchmarks import shards
from retrial.executors.limiter import calls_at_once, sandboxes_at_once
from retrial.predict import served_models
from retrial.predict.ladder import Ladder
from retrial.predict.manifest import identity
from retrial.predict.plan import Plan
from retrial.protocols import Sandbox
from retrial.sandboxes.prepare import Ready
from retrial.sandboxes.throttled import Bounded


def write(plan: Plan, ladder: Ladder, sandbox: Sandbox, skipped: Mapping[str, str], ready: Ready) -> None:
    old = plan.run.config() if plan.run.exists() else {}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    tasks = {task.instance_id for task in plan.tasks}
    still = {key: why for key, why in old.get("skipped", {}).items() if key not in tasks}
    options = plan.options
    plan.run.write_config(
        {
            "program": "harness.py",
            "run": plan.run.name,
            **({"grid": plan.grid} if plan.grid else {}),
            **({"shard": shards.record(plan.shard)} if plan.shard else {}),
            "command": plan.command,
            "started": now,
            "first_started": old.get("first_started", now),
            "identity": identity(plan),
            "agent": about(options.agent, ladder.rungs[0].agent),
            "provenance": dict(plan.benchmark.provenance),
            "model_name_or_path": plan.model_name,
            "selected": sorted({*old.get("selected", ()), *tasks}),
            "prior": list(dict.fromkeys((*old.get("prior", ()), *_played_again(plan), *plan.prior))),
            "skipped": {**still, **skipped},
            "sandbox": {**sandbox.describe(), "environments": {**_environments(old), **ready.record(sandbox)}},
            "limits": {
                "timeout_seconds": options.timeout_seconds,
                "test_timeout_seconds": options.test_timeout_seconds,
            },
            "jobs": calls_at_once(options.jobs),
            "test_jobs": sandboxes_at_once(options.test_jobs),
            "unpriced": sorted({*old.get("unpriced", ()), *(rung.name for rung in ladder.rungs if rung.unpriced)}),
            "max_cost": options.max_cost,
            "max_cost_per_task": options.max_cost_per_task,
            "served": old.get("served", {}),
            "host": platform.node(),
            "versions": {"retrial": __version__, "python": platform.python_version(), "system": platform.platform()},
        }
    )


def _played_again(plan: Plan) -> Sequence[str]:
    """What selected the tasks of the run that is played again selected those of this one."""
    found: Sequence[str] = plan.recording.run.config().get("prior", ()) if plan.recording else ()
    return found


def add_what_came(plan: Plan, sandbox: Bounded, ready: Ready, answered: served_models.Served) -> None:
    """Images that hold a task's tree were brought as they were needed: only now is it known which, and who answered."""
    stored = plan.run.config()
    known = {environment.name for environment in ready.versions}
    brought = {name: what for name, what in sandbox.record().items() if name not in known}
    used = {**_environments(stored), **brought}
    sandboxes = {**stored["sandbox"], "environments": used}
    plan.run.write_config({**stored, "sandbox": sandboxes, "served": answered})


def _environments(stored: Mapping[str, Any]) -> Mapping[str, object]:
    environments: Mapping[str, object] = stored.get("sandbox", {}).get("environments", {})
    return environments
