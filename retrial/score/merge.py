"""Several runs as one result: of each task the first plausible prediction in the order given, else the least bad."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial import __version__
from retrial.benchmarks import shards
from retrial.benchmarks.shards import Together
from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.reports.analysis.stats import total
from retrial.store import history
from retrial.store.history import PredictionSummary, RunHistory
from retrial.store.runs import Run, find_run
from retrial.system.console import say
from retrial.types import Task

LONGEST = 200
KEPT = ("command", "started", "first_started", "host", "sandbox", "versions", "shard")
"""What of a source's run.json goes into that of the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRun:
    past: RunHistory
    title: str
    """The run's name; where several have it, as copies from elsewhere may, its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One run made of several; nothing of it is on disk yet."""

    past: RunHistory
    sources: Sequence[MergedRun]
    chosen: Mapping[str, MergedRun]
    """Where each prediction comes from: id → source."""


def read(home: Path, texts: Sequence[str]) -> list[MergedRun]:
    """The runs of these names or paths.

    Raises: UsageError for what is no run of harness.py, twice the same, or runs of different benchmarks.
    """
    found = [_read(home, text) for text in texts]
    folders = [each.run.folder.resolve() for each in found]
    names = [each.run.name for each in found]
    for name, folder in zip(names, folders, strict=True):
        if folders.count(folder) > 1:
            raise UsageError(f"Run '{name}' is named twice.")
    first = found[0].identity
    history.refuse_other_benchmark(found[1:], first.get("benchmark"), first.get("benchmark_digest"))
    titles = (each.run.name if names.count(each.run.name) == 1 else str(each.run.folder) for each in found)
    return [MergedRun(past=each, title=title) for each, title in zip(found, titles, strict=True)]


def merge(home: Path, sources: Sequence[MergedRun], name: str = "", tasks: Sequence[Task] = ()) -> Merged:
    """These runs as one run, called `name`, or after the whole that they are shards of, or after all of them.

    `tasks` are all of the benchmark's: they tell what missing shards would have. Raises: UsageError.
    """
    found = [source.past for source in sources]
    together = shards.together(found)
    whole = together.whole if together and len(together.given) == len(found) else ""
    run = _target(home, name or whole or "+".join(each.run.name for each in found), sources)
    for note in together.notes() if together else ():
        say(f"note: {note}")
    config = _config(run, sources, together, tasks)
    named = {"model_name_or_path": config["model_name_or_path"]}
    chosen = {key: _choose(key, sources) for key in sorted({key for each in found for key in each.records})}
    records = {key: {**_record(key, sources, best, _summary), **named} for key, best in chosen.items()}
    return Merged(past=RunHistory(run=run, stored=config, records=records), sources=sources, chosen=chosen)


def write(merged: Merged) -> None:
    """On disk as any run's; what an earlier merge of that name had and this one has not is gone."""
    run = merged.past.run
    if run.exists():
        run.keep_only(merged.past.records)
    run.write_config(merged.past.stored)
    named = {"model_name_or_path": merged.past.stored["model_name_or_path"]}
    for instance_id, best in merged.chosen.items():
        record = {**_record(instance_id, merged.sources, best, _whole), **named}
        run.write_prediction(instance_id, record, best.past.run.chat(instance_id))


def _read(home: Path, text: str) -> RunHistory:
    run = find_run(home, text)
    if run is None and (Path(text) / "run.json").is_file():
        run = Run.at(Path(text))
    if run is None:
        raise UsageError(f"{text} is no run: only runs of harness.py can be made one result.")
    if history.is_merged(run.config()):
        raise UsageError(f"Run '{run.name}' is itself made of several: name those.")
    return history.read(run)


def _target(home: Path, name: str, sources: Sequence[MergedRun]) -> Run:
    if len(name) > LONGEST:
        raise UsageError("The runs' names together are too long for one: name the result with --run.")
    run = Run(home, name)
    if run.folder.resolve() in [source.past.run.folder.resolve() for source in sources]:
        raise UsageError(f"Run '{name}' is one of those to be made one result: give that another name with --run.")
    stored = run.config() if run.exists() else {}
    if stored and not history.is_merged(stored):
        raise UsageError(f"There is a run '{name}' already that was not made of several: name another with --run.")
    if stored and not set(stored["sources"]) <= {source.title for source in sources}:
        say(f"note: run '{name}' was made of {', '.join(stored['sources'])}; it is made anew")
    return run


def _choose(instance_id: str, sources: Sequence[MergedRun]) -> MergedRun:
    """Of equals the earliest."""
    having = [source for source in sources if instance_id in source.past.records]
    return min(having, key=lambda source: history.rank(source.past.records[instance_id]))


def _summary(source: RunHistory, instance_id: str) -> PredictionSummary:
    return source.records[instance_id]


def _whole(source: RunHistory, instance_id: str) -> PredictionSummary:
    """Read again: all of them at once may be more than memory holds."""
    return source.run.whole_prediction(instance_id)


def _record(
    instance_id: str,
    sources: Sequence[MergedRun],
    best: MergedRun,
    read: Callable[[RunHistory, str], PredictionSummary],
) -> dict[str, Any]:
    """The best record, with the attempts of all sources: they were all made and paid for."""
    record, attempts, number = read(best.past, instance_id), list[dict[str, Any]](), None
    for source in sources:
        own = read(source.past, instance_id) if instance_id in source.past.records else {}
        for attempt in own.get("all_results", ()):
            if source is best and attempt["try"] == record["try"]:
                number = len(attempts) + 1
            attempts.append({**attempt, "try": len(attempts) + 1, "dname": source.title})
    if number is None:
        path = best.past.run.prediction_path(instance_id)
        raise UsageError(f"{path} is not a whole prediction: its try {record['try']} is not in all_results.")
    return {**record, "dname": best.title, "try": number, "tries": len(attempts), "all_results": attempts}


def _config(run: Run, sources: Sequence[MergedRun], together: Together | None, tasks: Sequence[Task]) -> dict[str, Any]:
    found = [source.past for source in sources]
    done = {key for each in found for key in each.records}
    missing = together.missing_tasks(tasks) if together else {}
    open_tasks = {**missing, **{key: why for each in reversed(found) for key, why in each.not_predicted.items()}}
    reasons = {key: why for key, why in open_tasks.items() if key not in done}
    skipped = {key: why for each in reversed(found) for key, why in each.skipped.items()}
    spent = [each.run.spent() for each in found]
    return {
        "program": "report.py",
        "run": run.name,
        "sources": [source.title for source in sources],
        "source_runs": {source.title: _kept(source.past, cost) for source, cost in zip(sources, spent, strict=True)},
        **({"shards": together.record()} if together else {}),
        "command": " && ".join(_distinct(each.stored.get("command") for each in found)),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "identity": _identity(found, together),
        "agent": {"isolated": _isolated(found)},
        "provenance": found[0].stored.get("provenance", {}),
        "model_name_or_path": "+".join(_distinct(each.stored.get("model_name_or_path") for each in found)),
        "selected": sorted({*missing, *(key for each in found for key in each.selected)}),
        "prior": _prior(sources),
        "unpriced": _distinct(name for each in sources for name in each.past.stored.get("unpriced", ())),
        # What one machine had to skip, another may have begun.
        "skipped": {key: why for key, why in sorted(skipped.items()) if key not in done and key not in reasons},
        "not_predicted": dict(sorted(reasons.items())),
        "spent": sum(spent, Usage()),
        "unsettled": total(each.run.unsettled() for each in found),
        "versions": {"retrial": __version__},
    }


def _prior(sources: Sequence[MergedRun]) -> list[str]:
    """Runs whose results selected tasks of a source, and that are none themselves."""
    own = {source.past.run.name for source in sources}
    return [
        name
        for name in _distinct(key for each in sources for key in each.past.stored.get("prior", ()))
        if name not in own
    ]


def _kept(source: RunHistory, spent: Usage) -> dict[str, Any]:
    known = {name: source.stored[name] for name in KEPT if name in source.stored}
    return {**known, "predictions": len(source.records), "spent": spent}


def _identity(found: Sequence[RunHistory], together: Together | None) -> dict[str, Any]:
    """Of shards that are one whole, that of the whole; else only what all have in common."""
    first = found[0].identity
    if together and together.is_one and len(together.given) == len(found):
        return dict(first)
    common = {name: first.get(name) for name in ("benchmark", "benchmark_digest")}
    return {**common, **_visible_tests(found)}


def _isolated(found: Sequence[RunHistory]) -> bool | None:
    """One that was not is not lost among others."""
    isolated = [each.stored.get("agent", {}).get("isolated") for each in found]
    return None if None in isolated and False not in isolated else all(isolated)


def _visible_tests(found: Sequence[RunHistory]) -> dict[str, str]:
    """Every way that was used: one that knew hidden names must not be lost."""
    ways = _distinct(each.identity.get("visible_tests") for each in found)
    return {"visible_tests": "+".join(ways)} if ways else {}


def _distinct(values: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
