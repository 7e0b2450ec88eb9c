"""A run as it was scored, and whether another was asked under the same conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.reports.analysis.stats import MeasuredRate
from retrial.store.json_io import decode, from_json, read_json, to_json
from retrial.store.manifest import Manifest
from retrial.system.console import first_few, pluralise
from retrial.types import Outcome

ABOUT = (
    *("agent", "command", "agent_image", "models", "model_options", "reasoning_effort", "extra_body", "api_base"),
    *("seed", "prompts", "replay_of"),
)
"""What runs are compared to find out about. Whatever else in a run's identity differs is in the way of that."""
Environments = dict[str, dict[str, str | list[str]]]
"""What sandboxes say of each."""
NAMES = ("benchmark", "model_name_or_path")
"""What such things are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierInstance:
    """One of `instances`."""

    instance_id: str
    outcome: Outcome
    plausible: bool | None = None
    unverified: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSummary:
    """`aider`; empty for predictions made elsewhere."""

    test_cases: int | None = field(default=None, repr=False)
    pass_rate_1: float | None = None
    pass_rate_2: float | None = None
    percent_cases_well_formed: float | None = None
    seconds_per_case: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierProvenance:
    benchmark: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    environments: Environments = field(default_factory=dict)
    sandbox: dict[str, Any] = field(default_factory=dict)
    harness: dict[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    retrial: Any = None
    grading: Any = None
    swebench: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierShards:
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierResults:
    """What is read of a results.json; older ones lack what has a default."""

    instances: tuple[EarlierInstance, ...]
    not_measured: dict[str, str]
    skipped: dict[str, str]
    rate: MeasuredRate
    run: str = ""
    benchmark: str | None = None
    prior: tuple[str, ...] = ()
    visible_tests: str | None = None
    agent_isolated: bool | None = None
    by_model: dict[str, Any] = field(default_factory=dict)
    by_format: dict[str, Any] = field(default_factory=dict)
    aider: EarlierSummary = field(default_factory=EarlierSummary)
    spent: Usage = field(default_factory=Usage)
    shards: EarlierShards = field(default_factory=EarlierShards)
    provenance: EarlierProvenance = field(default_factory=EarlierProvenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two."""

    name: str
    results: EarlierResults
    config: Manifest = field(default_factory=Manifest)
    """Empty where there is only a results.json."""
    includes: frozenset[str] = frozenset()
    """Other runs whose results are part of this one's."""
    selection: str = ""
    """What to know of how its tasks were selected."""

    @property
    def run(self) -> str:
        """The run's own name; `name` may say more."""
        return self.results.run or self.name

    @property
    def prior(self) -> tuple[str, ...]:
        """Runs whose results selected its tasks."""
        return self.config.prior or self.results.prior

    @property
    def sources(self) -> tuple[str, ...]:
        """Runs that it was made of."""
        return self.config.sources or self.results.provenance.sources

    def contains(self, other: Side) -> bool:
        """Whether the results of the other run are part of this one's, or selected its tasks."""
        return other.run in {*self.includes, *self.prior, *self.sources} - {self.run}

    @property
    def measured(self) -> dict[str, bool]:
        """Whether it is resolved, of every task that was measured."""
        outcomes = {row.instance_id: row.outcome for row in self.results.instances}
        return {key: outcome is Outcome.RESOLVED for key, outcome in outcomes.items() if outcome.measured}

    @property
    def selected(self) -> set[str]:
        found = self.results
        return {*(row.instance_id for row in found.instances), *found.not_measured, *found.skipped}


def unscored(name: str, config: Manifest, source: object = None, digest: object = None) -> Side:
    """Return a run as far as it is known before it is scored."""
    nothing = MeasuredRate(percent=None, low=None, high=None, resolved=0, of=0)
    provenance = EarlierProvenance(benchmark={"source": source, "digest": digest})
    results = EarlierResults(instances=(), not_measured={}, skipped={}, rate=nothing, provenance=provenance)
    return Side(name=name, results=results, config=config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the two were asked."""

    warnings: tuple[str, ...] = ()
    """Conditions that are not the same: what is seen may be their doing."""
    differs_in: tuple[str, ...] = ()
    """What the comparison is about."""


def read_results(path: Path) -> EarlierResults:
    """The results.json of one run.

    Raises: UsageError when it cannot be read, or is about something else.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "kind" in content:
        kind = f"of a {content['kind']}" if isinstance(content, dict) else "no JSON object"
        raise UsageError(f"{path} is {kind}, not the results of one run: name a run that report.py has scored.")
    try:
        return decode(content, EarlierResults)
    except ValueError as error:
        raise UsageError(
            f"{path} is no results.json that report.py wrote: it lacks what every one has: {error}."
        ) from error


def read_back(results: object) -> EarlierResults:
    """Return results as they would be read from their file: only so is the same the same."""
    return decode(from_json(to_json(results)), EarlierResults)


def read_config(path: Path) -> Manifest:
    """The run.json beside one; empty where there is none, or another's: then it is not known how the run was made."""
    with suppress(ValueError):
        return decode(read_json(path), Manifest) if path.is_file() else Manifest()
    return Manifest()


def refuse_other_benchmark(a: Side, b: Side) -> None:
    """Raises: UsageError. A folder may have another path elsewhere: its digest tells that it is the same."""
    first, second = (each.results.provenance.benchmark or {"source": each.results.benchmark} for each in (a, b))
    if not any(first.get(name) == second.get(name) is not None for name in ("source", "digest")):
        raise UsageError(
            f"'{b.name}' is about {second.get('source')}, and '{a.name}' about {first.get('source')}: "
            "only runs of the same benchmark can be compared."
        )


def differences(a: Side, b: Side) -> Differences:
    """Of everything that is known of both. What is the same is not said."""
    first, second = (each.config.identity or {} for each in (a, b))
    unknown = [each.name for each in (a, b) if each.config.setting("agent") is None]
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
    first, second = dict(_conditions(a)), dict(_conditions(b))
    for name in (name for name in first if name in second and first[name] != second[name]):
        yield f"{name} differs: {_value(first[name])} in {a.name}, {_value(second[name])} in {b.name}"
    yield from _other_environments(a, b)
    only_a, only_b = a.selected - b.selected, b.selected - a.selected
    if only_a or only_b:
        yield f"selection differs: {pluralise(len(only_a), 'task')} only in {a.name}, {len(only_b)} only in {b.name}"


def _conditions(side: Side) -> Iterator[tuple[str, object]]:
    """As far as they are known."""
    results, scored = side.results, side.results.provenance
    found = {
        "benchmark_digest": scored.benchmark.get("digest"),
        "commit of the benchmark": scored.benchmark.get("commit"),
        "sandbox": scored.sandbox.get("sandbox"),
        "sandbox of phase 1": side.config.sandbox.get("sandbox"),
        "version of Retrial": scored.retrial,
        "version of Retrial in phase 1": scored.harness.get("retrial"),
        "version of grading": scored.grading,
        "version of swebench": scored.swebench,
        "visible_tests": results.visible_tests,
        "isolation of the agent": results.agent_isolated,
        "attempts": results.rate.attempts,
    }
    yield from ((name, value) for name, value in found.items() if value is not None)
    # Here none is known, too: it means the default.
    yield from ((f"limit {name}", value) for name, value in scored.limits.items())
    yield from ((f"limit {name} of phase 1", value) for name, value in side.config.limits.items())


def _other_environments(a: Side, b: Side) -> Iterator[str]:
    places = [
        ("", a.results.provenance.environments, b.results.provenance.environments),
        (" of phase 1", _environments(a.config), _environments(b.config)),
    ]
    for where, one, two in places:
        if names := sorted(name for name in one.keys() & two.keys() if one[name] != two[name]):
            versions = [each[names[0]].get("versions") for each in (one, two)]
            tools = f": {_value(versions[0])} in {a.name}, {_value(versions[1])} in {b.name}"
            yield f"environment{where} differs ({first_few(names)}){tools if versions[0] != versions[1] else ''}"


def _environments(config: Manifest) -> Environments:
    with suppress(ValueError):
        return decode(config.sandbox.get("environments", {}), Environments)
    return {}


def _value(value: object) -> str:
    """For people."""
    if isinstance(value, str) or not isinstance(value, Collection):
        return "none" if value in (None, "") else str(value)
    entries = (f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else map(str, value)
    return ", ".join(entries) or "none"
