"""Several runs as one result: of each task the first plausible prediction in the order given, else the least bad."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from retrial import __version__
from retrial.benchmarks import shards
from retrial.benchmarks.shards import Together
from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.reports.analysis.stats import total
from retrial.store import history
from retrial.store.history import RunHistory, find_run
from retrial.store.json_io import IF_GIVEN, decode
from retrial.store.manifest import Manifest, MergedShards, SourceRun
from retrial.store.records import AttemptSummary, PredictionSummary
from retrial.store.runs import Run
from retrial.system.console import say
from retrial.types import Task

LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedManifest:
    """run.json of a run made of several, in the order in which it is written; as in `Manifest`."""

    program: str = "report.py"
    run: str
    sources: Sequence[str]
    source_runs: Mapping[str, SourceRun]
    shards: MergedShards | None = field(default=None, metadata=IF_GIVEN)
    command: str
    started: str
    identity: Mapping[str, Any]
    agent: Mapping[str, bool | None]
    provenance: Mapping[str, Any]
    model_name_or_path: str
    selected: Sequence[str]
    prior: Sequence[str]
    unpriced: Sequence[str]
    skipped: Mapping[str, str]
    not_predicted: Mapping[str, str]
    spent: Usage
    unsettled: float | None
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRun:
    past: RunHistory
    title: str
    """The run's name; where several have it, as copies from elsewhere may, its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One run made of several; nothing of it is on disk yet."""

    past: RunHistory
    manifest: MergedManifest
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
    first = found[0].manifest
    history.refuse_other_benchmark(found[1:], first.setting("benchmark"), first.setting("benchmark_digest"))
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
    manifest = _manifest(run, sources, together, tasks)
    chosen = {key: _choose(key, sources) for key in sorted({key for each in found for key in each.records})}
    records = {key: _summary(key, sources, best, manifest.model_name_or_path) for key, best in chosen.items()}
    patches = {key: best.past.patches[key] for key, best in chosen.items()}
    past = RunHistory(run=run, manifest=decode(manifest, Manifest), records=records, patches=patches)
    return Merged(past=past, manifest=manifest, sources=sources, chosen=chosen)


def write(merged: Merged) -> None:
    """On disk as any run's; what an earlier merge of that name had and this one has not is gone."""
    run = merged.past.run
    if run.exists():
        run.keep_only(merged.past.records)
    run.write_config(merged.manifest)
    for instance_id, best in merged.chosen.items():
        record = _record(merged.past.records[instance_id], merged.sources, best)
        run.write_prediction(instance_id, record, best.past.run.chat(instance_id))


def _read(home: Path, text: str) -> RunHistory:
    run = find_run(home, text)
    if run is None and (Path(text) / "run.json").is_file():
        run = Run.at(Path(text))
    if run is None:
        raise UsageError(f"{text} is no run: only runs of harness.py can be made one result.")
    if run.manifest().is_merged:
        raise UsageError(f"Run '{run.name}' is itself made of several: name those.")
    return history.read(run)


def _target(home: Path, name: str, sources: Sequence[MergedRun]) -> Run:
    if len(name) > LONGEST:
        raise UsageError("The runs' names together are too long for one: name the result with --run.")
    run = Run(home, name)
    if run.folder.resolve() in [source.past.run.folder.resolve() for source in sources]:
        raise UsageError(f"Run '{name}' is one of those to be made one result: give that another name with --run.")
    if not run.exists():
        return run
    sources_before = run.manifest().sources or ()
    if not sources_before:
        raise UsageError(f"There is a run '{name}' already that was not made of several: name another with --run.")
    if not set(sources_before) <= {source.title for source in sources}:
        say(f"note: run '{name}' was made of {', '.join(sources_before)}; it is made anew")
    return run


def _choose(instance_id: str, sources: Sequence[MergedRun]) -> MergedRun:
    """Of equals the earliest."""
    having = [source for source in sources if instance_id in source.past.records]
    return min(having, key=lambda source: source.past.records[instance_id].rank)


def _summary(instance_id: str, sources: Sequence[MergedRun], best: MergedRun, name: str) -> PredictionSummary:
    """The best prediction, with the attempts of all sources: they were all made and paid for."""
    chosen, attempts, number = best.past.records[instance_id], list[AttemptSummary](), None
    for source in sources:
        own = source.past.records[instance_id].all_results if instance_id in source.past.records else ()
        for attempt in own:
            if source is best and attempt.number == chosen.number:
                number = len(attempts) + 1
            attempts.append(replace(attempt, number=len(attempts) + 1, dname=source.title))
    if number is None:
        path = best.past.run.prediction_path(instance_id)
        raise UsageError(f"{path} is not a whole prediction: its try {chosen.number} is not in all_results.")
    return replace(
        chosen,
        model_name_or_path=name,
        dname=best.title,
        number=number,
        tries=len(attempts),
        all_results=tuple(attempts),
    )


def _record(merged: PredictionSummary, sources: Sequence[MergedRun], best: MergedRun) -> dict[str, object]:
    """The same as its sources have it on disk: all of them at once may be more than memory holds."""
    having = [source for source in sources if merged.instance_id in source.past.records]
    files = {source.title: source.past.run.stored_prediction(merged.instance_id) for source in having}
    attempts = [(title, attempt) for title, record in files.items() for attempt in record["all_results"]]
    return {
        **files[best.title],
        "dname": best.title,
        "try": merged.number,
        "tries": merged.tries,
        "all_results": [
            {**attempt, "try": number, "dname": title} for number, (title, attempt) in enumerate(attempts, start=1)
        ],
        "model_name_or_path": merged.model_name_or_path,
    }


def _manifest(
    run: Run, sources: Sequence[MergedRun], together: Together | None, tasks: Sequence[Task]
) -> MergedManifest:
    found = [source.past for source in sources]
    done = {key for each in found for key in each.records}
    missing = together.missing_tasks(tasks) if together else {}
    open_tasks = {**missing, **{key: why for each in reversed(found) for key, why in each.not_predicted.items()}}
    reasons = {key: why for key, why in open_tasks.items() if key not in done}
    skipped = {key: why for each in reversed(found) for key, why in each.skipped.items()}
    kept = {source.title: _kept(source.past) for source in sources}
    return MergedManifest(
        run=run.name,
        sources=[source.title for source in sources],
        source_runs=kept,
        shards=together.record() if together else None,
        command=" && ".join(_distinct(each.manifest.command for each in found)),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        identity=_identity(found, together),
        agent={"isolated": _isolated(found)},
        provenance=found[0].manifest.provenance,
        model_name_or_path="+".join(_distinct(each.manifest.model_name_or_path for each in found)),
        selected=tuple(sorted({*missing, *(key for each in found for key in each.selected)})),
        prior=_prior(sources),
        unpriced=_distinct(name for each in found for name in each.manifest.unpriced),
        # What one machine had to skip, another may have begun.
        skipped={key: why for key, why in sorted(skipped.items()) if key not in done and key not in reasons},
        not_predicted=dict(sorted(reasons.items())),
        spent=sum((each.spent for each in kept.values()), Usage()),
        unsettled=total(each.run.unsettled() for each in found),
        versions={"retrial": __version__},
    )


def _prior(sources: Sequence[MergedRun]) -> list[str]:
    """Runs whose results selected tasks of a source, and that are none themselves."""
    own = {source.past.run.name for source in sources}
    return [name for name in _distinct(key for each in sources for key in each.past.manifest.prior) if name not in own]


def _kept(source: RunHistory) -> SourceRun:
    known = source.manifest
    return SourceRun(
        command=known.command,
        started=known.started,
        first_started=known.first_started,
        host=known.host,
        sandbox=known.sandbox or None,
        versions=known.versions,
        shard=known.shard,
        predictions=len(source.records),
        spent=source.run.spent(),
    )


def _identity(found: Sequence[RunHistory], together: Together | None) -> dict[str, Any]:
    """Of shards that are one whole, that of the whole; else only what all have in common."""
    first = found[0].manifest
    if together and together.is_one and len(together.given) == len(found):
        return dict(first.identity or {})
    common = {name: first.setting(name) for name in ("benchmark", "benchmark_digest")}
    return {**common, **_visible_tests(found)}


def _isolated(found: Sequence[RunHistory]) -> bool | None:
    """One that was not is not lost among others."""
    isolated = [each.manifest.agent.isolated for each in found]
    return None if None in isolated and False not in isolated else all(isolated)


def _visible_tests(found: Sequence[RunHistory]) -> dict[str, str]:
    """Every way that was used: one that knew hidden names must not be lost."""
    ways = _distinct(each.manifest.setting("visible_tests") for each in found)
    return {"visible_tests": "+".join(ways)} if ways else {}


def _distinct(values: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
