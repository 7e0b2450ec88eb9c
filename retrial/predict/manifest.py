"""What may not change between two goes at one run: another question is another run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from retrial import registry
from retrial.benchmarks import shards
from retrial.errors import UsageError
from retrial.predict.plan import Plan
from retrial.store import history
from retrial.store.runs import Run
from retrial.system.secrets import KNOWN, hidden
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
    own = [_kept({name: value for name, value in rung.own.items() if name in ASKED}) for rung in plan.rungs]
    return {"model_options": own} if any(own) else {}


def _kept(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Without passwords and keys: they are not what is asked."""
    return {name: hidden(value) if isinstance(value, str) else value for name, value in asked.items()}


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
    new = json.loads(KNOWN.masked(json.dumps(new)))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    changed = [f"{key}: {old.get(key)} then, {new.get(key)} now" for key in keys]
    if changed:
        raise UsageError(
            f"Run '{run.name}' was started with other settings ({'; '.join(changed)}): "
            "use them again, or name another run with --run."
        )
