"""run.json: what a run is and may not change, how it was started, and in the end where it ran and who answered."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from retrial import __version__, registry
from retrial.agents import about
from retrial.attempts import Attempt
from retrial.benchmarks import shards
from retrial.errors import UsageError
from retrial.executors.limiter import calls_at_once, sandboxes_at_once
from retrial.predict.ladder import Ladder
from retrial.predict.plan import Plan
from retrial.protocols import Sandbox
from retrial.sandboxes.prepare import PreparedEnvironments
from retrial.sandboxes.throttled import UsedEnvironments
from retrial.store.manifest import GROUPS, Manifest
from retrial.store.records import PredictionSummary
from retrial.store.runs import Run
from retrial.system.secrets import MASKER, redact_by_name
from retrial.types import fingerprint

ASKED = ("temperature", "retry_temperature", "seed", "max_tokens", "reasoning_effort", "extra_body", "api_base")
"""Those of a model's options that make its questions."""
PROGRAM = ("command", "agent_image", "agent_on_host")
"""Options that make an agent what it is."""
OF_REPOSITORIES = ("visible_tests", "map_tokens")
"""Options that exercises have no use for."""
SHOWN = 4
Served = dict[str, list[str]]
"""Model → who answered for it, in the order of their coming."""


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
    return [*getattr(agent, "PROMPTS", ()), *((form.prompt, tuple(map(asdict, form.tools))) for form in formats)]


class RunManifest:
    """run.json of one run, from its check before the first call to its end."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._identity = identity(plan)
        self._old = Manifest()
        """As earlier goes left it."""
        self._content: dict[str, Any] = {}
        """As this one has written it."""
        self.served: Served = {}
        """Who answered, in this go and in earlier ones."""

    def refuse_other(self) -> None:
        """Raises: UsageError when there is another run of that name already."""
        shard = self._plan.shard
        self._old = refuse_change(self._plan.run, {**self._identity, **(shard.identity if shard else {})})

    def start(self, ladder: Ladder, sandbox: Sandbox, skipped: Mapping[str, str], ready: PreparedEnvironments) -> None:
        """Write it, with what earlier goes at this run have written. To be called after `refuse_other`."""
        plan, options, old = self._plan, self._plan.options, self._old
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        tasks = {task.instance_id for task in plan.tasks}
        still = {key: why for key, why in old.skipped.items() if key not in tasks}
        self._content = {
            "program": "harness.py",
            "run": plan.run.name,
            **({"grid": plan.grid} if plan.grid else {}),
            **({"shard": plan.shard} if plan.shard else {}),
            "command": plan.command,
            "started": now,
            "first_started": old.first_started or now,
            "identity": self._identity,
            "agent": about(options.agent, ladder.rungs[0].agent),
            "provenance": dict(plan.benchmark.provenance),
            "model_name_or_path": plan.model_name,
            "selected": sorted({*old.selected, *tasks}),
            "prior": list(dict.fromkeys((*old.prior, *_played_again(plan), *plan.prior))),
            "skipped": {**still, **skipped},
            "sandbox": {
                **sandbox.describe(),
                "environments": {**old.sandbox.get("environments", {}), **ready.record(sandbox)},
            },
            "limits": {
                "timeout_seconds": options.timeout_seconds,
                "test_timeout_seconds": options.test_timeout_seconds,
            },
            "jobs": calls_at_once(options.jobs),
            "test_jobs": sandboxes_at_once(options.test_jobs),
            "unpriced": sorted({*old.unpriced, *(rung.name for rung in ladder.rungs if rung.unpriced)}),
            "max_cost": options.max_cost,
            "max_cost_per_task": options.max_cost_per_task,
            "served": old.served,
            "host": platform.node(),
            "versions": {"retrial": __version__, "python": platform.python_version(), "system": platform.platform()},
        }
        plan.run.write_config(self._content)
        self.served = {model: list(names) for model, names in old.served.items()}

    def add_recorded(self, records: Iterable[PredictionSummary]) -> None:
        """Who answered in finished tasks: a process that was killed has not written that."""
        for record in records:
            for attempt in record.all_results:
                self._add(attempt.model, attempt.served)

    def add(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self._add(attempt.model, attempt.served)

    def _add(self, model: str, answered: Sequence[str]) -> None:
        names = self.served.setdefault(model, []) if answered else []
        names += [name for name in answered if name not in names]

    def finish(self, used: UsedEnvironments, ready: PreparedEnvironments) -> None:
        """Write who answered, and which images of tasks were used: they were pulled as they were needed.

        Raises: UsageError when the run's folder was taken away: what is in its place now is not the run.
        """
        self._plan.run.refuse_missing()
        known = {environment.name for environment in ready.versions}
        pulled = {name: what for name, what in used.record().items() if name not in known}
        if not pulled and self.served == {model: list(names) for model, names in self._old.served.items()}:
            return
        sandboxes = self._content["sandbox"]
        sandboxes = {**sandboxes, "environments": {**sandboxes["environments"], **pulled}}
        self._plan.run.write_config({**self._content, "sandbox": sandboxes, "served": self.served})

    def served_changes(self) -> list[str]:
        """One sentence for each model that more than one answered for."""
        changes = []
        for model, names in self.served.items():
            if len(names) > 1:
                more = len(names) - SHOWN
                shown = [*names[:SHOWN], *([f"{more} more"] if more > 0 else [])]
                changes.append(f"note: {model} was served as {', '.join(shown[:-1])} and {shown[-1]}")
        return changes


def refuse_change(run: Run, new: Mapping[str, Any], *, kind: str = "") -> Manifest:
    """Return what run.json has; nothing for a new run. `kind` is that of a group of runs.

    Raises: UsageError when there is something else of that name already.
    """
    if not run.exists():
        if run.journal_paths():
            raise UsageError(
                f"{run.folder} holds journals, but no run.json: what was asked there cannot be told. "
                "Move it away, or name another run with --run."
            )
        return Manifest()
    manifest = run.manifest()
    if manifest.program != "harness.py":
        raise UsageError(f"Run '{run.name}' holds predictions made elsewhere: name another run with --run.")
    found = manifest.group
    if found != kind:
        raise UsageError(f"'{run.name}' is {GROUPS.get(found, 'one run')} already: name another with --run.")
    shard = shards.stored(manifest)
    old = {**(manifest.identity or {}), **(shard.identity if shard else {})}
    # As it would be read back.
    new = json.loads(MASKER.redact(json.dumps(new)))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    changed = [f"{key}: {old.get(key)} then, {new.get(key)} now" for key in keys]
    if changed:
        raise UsageError(
            f"Run '{run.name}' was started with other settings ({'; '.join(changed)}): "
            "use them again, or name another run with --run."
        )
    return manifest


def _played_again(plan: Plan) -> Sequence[str]:
    """What selected the tasks of the run that is played again selected those of this one."""
    return plan.recording.run.manifest().prior if plan.recording else ()
