"""A run as it was scored, and whether another was asked under the same conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

from retrial.errors import UsageError
from retrial.store import integrity
from retrial.store.runs import read_json
from retrial.system.console import first_few, pluralise
from retrial.types import Outcome

ABOUT = (
    *("agent", "command", "agent_image", "models", "model_options", "reasoning_effort", "extra_body", "api_base"),
    *("seed", "prompts", "replay_of"),
)
"""What runs are compared to find out about. Whatever else in a run's identity differs is in the way of that."""
_ENVIRONMENTS = {"*": {"versions?": (list, dict, str)}}
RESULTS = {
    "instances": [{"instance_id": str, "outcome": str}],
    "not_measured": dict,
    "skipped": dict,
    "rate": {**dict.fromkeys(("percent", "low", "high"), (int, float, NoneType)), "resolved": int, "of": int},
    "provenance?": {
        "benchmark?": dict,
        "limits?": dict,
        "environments?": _ENVIRONMENTS,
        "sandbox?": dict,
        "sources?": [str],
    },
    "aider?": dict,
    "spent?": dict,
    "by_model?": dict,
    "by_format?": dict,
    "prior?": [str],
}
"""What is read of a results.json."""
CONFIG = {
    "prior?": [str],
    "sources?": [str],
    "identity?": dict,
    "limits?": dict,
    "sandbox?": {"environments?": _ENVIRONMENTS},
}
"""What is read of a run.json."""
NAMES = ("benchmark", "model_name_or_path")
"""What such things are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two."""

    name: str
    content: Mapping[str, Any]
    """Its results.json."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Its run.json; empty where there is only a results.json."""
    includes: frozenset[str] = frozenset()
    """Other runs whose results are part of this one's."""
    selection: str = ""
    """What to know of how its tasks were selected."""

    @property
    def run(self) -> str:
        """The run's own name; `name` may say more."""
        return str(self.content.get("run") or self.name)

    @property
    def prior(self) -> tuple[str, ...]:
        """Runs whose results selected its tasks."""
        return tuple(self.config.get("prior") or self.content.get("prior") or ())

    @property
    def sources(self) -> tuple[str, ...]:
        """Runs that it was made of."""
        return tuple(self.config.get("sources") or _part(self.content, "provenance", "sources") or ())

    def contains(self, other: Side) -> bool:
        """Whether the results of the other run are part of this one's, or selected its tasks."""
        return other.run in {*self.includes, *self.prior, *self.sources} - {self.run}

    @property
    def measured(self) -> dict[str, bool]:
        """Whether it is resolved, of every task that was measured."""
        outcomes = {row["instance_id"]: Outcome(row["outcome"]) for row in self.content["instances"]}
        return {key: outcome is Outcome.RESOLVED for key, outcome in outcomes.items() if outcome.measured}

    @property
    def selected(self) -> set[str]:
        rows = self.content["instances"]
        return {*(row["instance_id"] for row in rows), *self.content["not_measured"], *self.content["skipped"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the two were asked."""

    warnings: tuple[str, ...] = ()
    """Conditions that are not the same: what is seen may be their doing."""
    differs_in: tuple[str, ...] = ()
    """What the comparison is about."""


def read_results(path: Path) -> dict[str, Any]:
    """The results.json of one run.

    Raises: UsageError when it cannot be read, or is about something else.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "kind" in content:
        kind = f"of a {content['kind']}" if isinstance(content, dict) else "no JSON object"
        raise UsageError(f"{path} is {kind}, not the results of one run: name a run that report.py has scored.")
    known = {str(outcome) for outcome in Outcome}
    if not integrity.matches_schema(content, RESULTS) or not all(
        row["outcome"] in known for row in content["instances"]
    ):
        raise UsageError(f"{path} is no results.json that report.py wrote: it lacks what every one has.")
    return content


def read_config(path: Path) -> dict[str, Any]:
    """The run.json beside one; nothing where there is none, or another's: then it is not known how the run was made."""
    found = read_json(path) if path.is_file() else {}
    return found if integrity.matches_schema(found, CONFIG) else {}


def refuse_other_benchmark(a: Side, b: Side) -> None:
    """Raises: UsageError. A folder may have another path elsewhere: its digest tells that it is the same."""
    first, second = (_benchmark(each.content) for each in (a, b))
    if not any(first.get(name) == second.get(name) is not None for name in ("source", "digest")):
        raise UsageError(
            f"'{b.name}' is about {second.get('source')}, and '{a.name}' about {first.get('source')}: "
            "only runs of the same benchmark can be compared."
        )


def _benchmark(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return _part(content, "provenance", "benchmark") or {"source": content.get("benchmark")}


def differences(a: Side, b: Side) -> Differences:
    """Of everything that is known of both. What is the same is not said."""
    first, second = a.config.get("identity", {}), b.config.get("identity", {})
    unknown = [each.name for each in (a, b) if "agent" not in each.config.get("identity", {})]
    names = [] if unknown else [*first, *(name for name in second if name not in first)]
    settings = [name for name in names if first.get(name) != second.get(name) and name not in NAMES]
    said = {name: f"{_value(first.get(name))} in {a.name}, {_value(second.get(name))} in {b.name}" for name in settings}
    warnings = [
        *(each.selection for each in (a, b) if each.selection),
        *(f"{name} differs: {said[name]}" for name in settings if name not in ABOUT),
        *_other_conditions(a, b),
        *(f"how {name} was made is not known here: its settings could not be compared" for name in unknown),
    ]
    return Differences(
        # Both phases tell of some.
        warnings=tuple(dict.fromkeys(warnings)),
        differs_in=tuple(f"{name}: {said[name]}" for name in settings if name in ABOUT),
    )


def _other_conditions(a: Side, b: Side) -> Iterator[str]:
    first, second = _conditions(a), _conditions(b)
    for name in (name for name in first if name in second and first[name] != second[name]):
        yield f"{name} differs: {_value(first[name])} in {a.name}, {_value(second[name])} in {b.name}"
    yield from _other_environments(a, b)
    only_a, only_b = a.selected - b.selected, b.selected - a.selected
    if only_a or only_b:
        yield f"selection differs: {pluralise(len(only_a), 'task')} only in {a.name}, {len(only_b)} only in {b.name}"


def _conditions(side: Side) -> dict[str, Any]:
    """As far as they are known."""
    content, config = side.content, side.config
    found = {
        "benchmark_digest": _part(content, "provenance", "benchmark", "digest"),
        "commit of the benchmark": _part(content, "provenance", "benchmark", "commit"),
        "sandbox": _part(content, "provenance", "sandbox", "sandbox"),
        "sandbox of phase 1": _part(config, "sandbox", "sandbox"),
        "version of Retrial": _part(content, "provenance", "retrial"),
        "version of Retrial in phase 1": _part(content, "provenance", "harness", "retrial"),
        "version of grading": _part(content, "provenance", "grading"),
        "version of swebench": _part(content, "provenance", "swebench"),
        "visible_tests": content.get("visible_tests"),
        "isolation of the agent": content.get("agent_isolated"),
        "attempts": _part(content, "rate", "attempts"),
    }
    # Here none is known, too: it means the default.
    scored = {f"limit {name}": value for name, value in (_part(content, "provenance", "limits") or {}).items()}
    limits = {f"limit {name} of phase 1": value for name, value in (_part(config, "limits") or {}).items()}
    return {**{name: value for name, value in found.items() if value is not None}, **scored, **limits}


def _other_environments(a: Side, b: Side) -> Iterator[str]:
    places = [("", a.content, b.content), (" of phase 1", a.config, b.config)]
    for where, first, second in places:
        path = ("sandbox", "environments") if where else ("provenance", "environments")
        one, two = _part(first, *path) or {}, _part(second, *path) or {}
        if names := sorted(name for name in one.keys() & two.keys() if one[name] != two[name]):
            versions = [each[names[0]].get("versions") for each in (one, two)]
            tools = f": {_value(versions[0])} in {a.name}, {_value(versions[1])} in {b.name}"
            yield f"environment{where} differs ({first_few(names)}){tools if versions[0] != versions[1] else ''}"


def _part(value: Any, *names: str) -> Any:
    """What lies there; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _value(value: object) -> str:
    """For people."""
    if isinstance(value, str) or not isinstance(value, Collection):
        return "none" if value in (None, "") else str(value)
    return ", ".join(map(str, _flat(value))) or "none"


def _flat(value: Collection[Any]) -> Iterable[object]:
    return (f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else value
