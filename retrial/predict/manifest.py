"""What may not change between two goes at one run: another question is another run."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from retrial import __version__, registry
from retrial.agents import about
from retrial.benchmarks import shards
from retrial.errors import UsageError
from retrial.executors.limiter import calls_at_once, sandboxes_at_once
from retrial.predict import save
from retrial.predict.ladder import Ladder
from retrial.predict.plan import Plan
from retrial.protocols import Sandbox
from retrial.sandboxes.prepare import PreparedEnvironments
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.store import history
from retrial.store.runs import Run
from retrial.system.secrets import MASKER, redact_by_name
from retrial.types import fingerprint

ASKED = ("temperature", "retry_temperature", "seed", "max_tokens", "reasoning_effort", "extra_body", "api_base")
"""Those of a model's options that make its questions."""
PROGRAM = ("command", "agent_image", "agent_on_host")
"""Options that make an agent what it is."""
OF_REPOSITORIES = ("visible_tests", "map_tokens")
"""Options that exercises have no use for."""


def identity(plan: Plan) -> dict[str, Any]:
    """What may not change between two goes at one run."""
    options, provenance = plan.options, plan.benchmark.provenance
    asked = _kept({name: getattr(options, name) for name in ASKED})
    return {
        "benchmark": provenance["source"],
        "benchmark_digest": provenance["digest"],
        "agent": options.agent,
        **{name: getattr(options, name) for name in PROGRAM if getattr(options, name)},
        "model_name_or_path": plan.model_name,
        "models": [rung.title for rung in plan.rungs],
        **_own_options(plan),
        "tries": plan.tries,
        "turns": options.turns,
        "reflections": options.reflections,
        **{name: value for name, value in asked.items() if value or name not in ("reasoning_effort", "extra_body")},
        **({} if plan.benchmark.visible_is_hidden else {name: getattr(options, name) for name in OF_REPOSITORIES}),
        "editor_files": "hidden" if options.hide_editor_files else "shown",
        "prompts": fingerprint(_prompts(plan))[:16],
        **({"replay_of": plan.recording.run.name} if plan.recording else {}),
    }


def _own_options(plan: Plan) -> dict[str, Any]:
    own = [_kept({name: value for name, value in rung.overrides.items() if name in ASKED}) for rung in plan.rungs]
    return {"model_options": own} if any(own) else {}


def _kept(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Without passwords and keys: they are not what is asked."""
    return {name: redact_by_name(value) if isinstance(value, str) else value for name, value in asked.items()}


def _prompts(plan: Plan) -> list[object]:
    """Every text of ours that a model may read."""
    agent = registry.module("agents", plan.options.agent)
    names = [rung.edit_format for rung in plan.rungs if rung.edit_format]
    formats = [registry.module("formats", name).make() for name in names]
    return [*getattr(agent, "PROMPTS", ()), *((form.prompt, form.tools) for form in formats)]


def refuse_other_identity(plan: Plan) -> None:
    refuse_change(plan.run, {**identity(plan), **(plan.shard.identity if plan.shard else {})})


def refuse_change(run: Run, new: Mapping[str, Any], *, kind: str = "") -> None:
    """`kind` is that of a group of runs. Raises: UsageError when there is something else of that name already."""
    if not run.exists():
        if run.journal_paths():
            raise UsageError(
                f"{run.folder} holds journals, but no run.json: what was asked there cannot be told. "
                "Move it away, or name another run with --run."
            )
        return
    stored = run.config()
    if stored.get("program") != "harness.py":
        raise UsageError(f"Run '{run.name}' holds predictions made elsewhere: name another run with --run.")
    found = history.group_kind(stored)
    if found != kind:
        raise UsageError(f"'{run.name}' is {history.GROUPS.get(found, 'one run')} already: name another with --run.")
    shard = shards.stored(stored)
    old = {**stored.get("identity", {}), **(shard.identity if shard else {})}
    # As it would be read back.
    new = json.loads(MASKER.redact(json.dumps(new)))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    changed = [f"{key}: {old.get(key)} then, {new.get(key)} now" for key in keys]
    if changed:
        raise UsageError(
            f"Run '{run.name}' was started with other settings ({'; '.join(changed)}): "
            "use them again, or name another run with --run."
        )


def write(
    plan: Plan, ladder: Ladder, sandbox: Sandbox, skipped: Mapping[str, str], ready: PreparedEnvironments
) -> None:
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


def finish(plan: Plan, sandbox: ThrottledSandbox, ready: PreparedEnvironments, answered: save.Served) -> None:
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
