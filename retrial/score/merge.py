"""Several runs as one result: of each task the first plausible prediction in the order given, else the least bad."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from retrial import __version__
from retrial.benchmarks import shards
from retrial.benchmarks.shards import Together
from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.reports.analysis.stats import total
from retrial.store import history
from retrial.store.history import RunHistory, find_run
from retrial.store.manifest import AgentFacts, Manifest, SourceRun, utc_now
from retrial.store.records import AttemptSummary, PredictionSummary
from retrial.store.runs import Run
from retrial.system.console import say
from retrial.types import Task

LONGEST = 200


WRITTEN = (
    *("program", "run", "sources", "source_runs", "shards", "command", "started", "identity", "agent", "provenance"),
    *("model_name_or_path", "selected", "prior", "unpriced", "skipped", "not_predicted", "spent", "unsettled"),
    "versions",
)
"""Fields of run.json, in order; `shards` only where there are some."""
KEPT = ("command", "started", "first_started", "host", "versions", "shard")
"""What of a source's run.json goes into that of the whole."""
Sources: TypeAlias = Mapping[str, RunHistory]
"""In the order given, by title: the run's name; where several have it, as copies from elsewhere may, its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One run made of several; nothing of it is on disk yet."""

    past: RunHistory
    sources: Sources
    chosen: Mapping[str, str]
    """Where each prediction comes from: id → title."""


def read(home: Path, texts: Sequence[str]) -> Sources:
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
    return dict(zip(titles, found, strict=True))


def merge(home: Path, sources: Sources, name: str = "", tasks: Sequence[Task] = ()) -> Merged:
    """These runs as one run, called `name`, or after the whole that they are shards of, or after all of them.

    `tasks` are all of the benchmark's: they tell what missing shards would have. Raises: UsageError.
    """
    found = list(sources.values())
    together = shards.together(found)
    whole = together.whole if together and len(together.given) == len(found) else ""
    run = _target(home, name or whole or "+".join(each.run.name for each in found), sources)
    for note in together.notes() if together else ():
        say(f"note: {note}")
    manifest = _manifest(run, sources, together, tasks)
    chosen = {key: _choose(key, sources) for key in sorted({key for each in found for key in each.records})}
    records = {key: _summary(key, sources, best, manifest.model_name_or_path) for key, best in chosen.items()}
    patches = {key: sources[best].patches[key] for key, best in chosen.items()}
    past = RunHistory(run=run, manifest=manifest, records=records, patches=patches)
    return Merged(past=past, sources=sources, chosen=chosen)


def write(merged: Merged) -> None:
    """On disk as any run's; what an earlier merge of that name had and this one has not is gone."""
    run = merged.past.run
    if run.exists():
        run.keep_only(merged.past.records)
    manifest = merged.past.manifest
    run.write_config({name: getattr(manifest, name) for name in WRITTEN if name != "shards" or manifest.shards})
    for instance_id, best in merged.chosen.items():
        record = _record(merged.past.records[instance_id], merged.sources, best)
        run.write_prediction(instance_id, record, merged.sources[best].run.chat(instance_id))


def _read(home: Path, text: str) -> RunHistory:
    run = find_run(home, text)
    if run is None and (Path(text) / "run.json").is_file():
        run = Run.at(Path(text))
    if run is None:
        raise UsageError(f"{text} is no run: only runs of harness.py can be made one result.")
    if run.manifest().is_merged:
        raise UsageError(f"Run '{run.name}' is itself made of several: name those.")
    return history.read(run)


def _target(home: Path, name: str, sources: Sources) -> Run:
    if len(name) > LONGEST:
        raise UsageError("The runs' names together are too long for one: name the result with --run.")
    run = Run(home, name)
    if run.folder.resolve() in [source.run.folder.resolve() for source in sources.values()]:
        raise UsageError(f"Run '{name}' is one of those to be made one result: give that another name with --run.")
    if not run.exists():
        return run
    sources_before = run.manifest().sources or ()
    if not sources_before:
        raise UsageError(f"There is a run '{name}' already that was not made of several: name another with --run.")
    if not set(sources_before) <= set(sources):
        say(f"note: run '{name}' was made of {', '.join(sources_before)}; it is made anew")
    return run


def _choose(instance_id: str, sources: Sources) -> str:
    """Of equals the earliest."""
    ranks = {title: past.records[instance_id].rank for title, past in sources.items() if instance_id in past.records}
    return min(ranks, key=ranks.__getitem__)


def _summary(instance_id: str, sources: Sources, best: str, name: str) -> PredictionSummary:
    """The best prediction, with the attempts of all sources: they were all made and paid for."""
    chosen, attempts, number = sources[best].records[instance_id], list[AttemptSummary](), None
    for title, past in sources.items():
        own = past.records[instance_id].all_results if instance_id in past.records else ()
        for attempt in own:
            if title == best and attempt.number == chosen.number:
                number = len(attempts) + 1
            attempts.append(replace(attempt, number=len(attempts) + 1, dname=title))
    if number is None:
        path = sources[best].run.prediction_path(instance_id)
        raise UsageError(f"{path} is not a whole prediction: its try {chosen.number} is not in all_results.")
    return replace(
        chosen,
        model_name_or_path=name,
        dname=best,
        number=number,
        tries=len(attempts),
        all_results=tuple(attempts),
    )


def _record(merged: PredictionSummary, sources: Sources, best: str) -> dict[str, object]:
    """The same as its sources have it on disk: all of them at once may be more than memory holds."""
    having = {title: past.run for title, past in sources.items() if merged.instance_id in past.records}
    files = {title: run.stored_prediction(merged.instance_id) for title, run in having.items()}
    attempts = [(title, attempt) for title, record in files.items() for attempt in record["all_results"]]
    return {
        **files[best],
        "dname": best,
        "try": merged.number,
        "tries": merged.tries,
        "all_results": [
            {**attempt, "try": number, "dname": title} for number, (title, attempt) in enumerate(attempts, start=1)
        ],
        "model_name_or_path": merged.model_name_or_path,
    }


def _manifest(run: Run, sources: Sources, together: Together | None, tasks: Sequence[Task]) -> Manifest:
    found = list(sources.values())
    done = {key for each in found for key in each.records}
    missing = together.missing_tasks(tasks) if together else {}
    open_tasks = {**missing, **{key: why for each in reversed(found) for key, why in each.not_predicted.items()}}
    reasons = {key: why for key, why in open_tasks.items() if key not in done}
    skipped = {key: why for each in reversed(found) for key, why in each.skipped.items()}
    kept = {title: _kept(past) for title, past in sources.items()}
    return Manifest(
        program="report.py",
        run=run.name,
        sources=tuple(sources),
        source_runs=kept,
        shards=together.record() if together else None,
        command=" && ".join(_distinct(each.manifest.command for each in found)),
        started=utc_now(),
        identity=_identity(found, together),
        agent=AgentFacts(isolated=_isolated(found)),
        provenance=found[0].manifest.provenance,
        model_name_or_path="+".join(_distinct(each.manifest.model_name_or_path for each in found)),
        selected=tuple(sorted({*missing, *(key for each in found for key in each.selected)})),
        prior=tuple(_prior(found)),
        unpriced=tuple(_distinct(name for each in found for name in each.manifest.unpriced)),
        # What one machine had to skip, another may have begun.
        skipped={key: why for key, why in sorted(skipped.items()) if key not in done and key not in reasons},
        not_predicted=dict(sorted(reasons.items())),
        spent=sum((each.spent for each in kept.values()), Usage()),
        unsettled=total(each.run.unsettled() for each in found),
        versions={"retrial": __version__},
    )


def _prior(found: Sequence[RunHistory]) -> list[str]:
    """Runs whose results selected tasks of a source, and that are none themselves."""
    own = {each.run.name for each in found}
    return [name for name in _distinct(key for each in found for key in each.manifest.prior) if name not in own]


def _kept(source: RunHistory) -> SourceRun:
    known = source.manifest
    return SourceRun(
        **{name: getattr(known, name) for name in KEPT},
        sandbox=known.sandbox or None,
        predictions=len(source.records),
        spent=source.run.spent(),
    )


def _identity(found: Sequence[RunHistory], together: Together | None) -> dict[str, Any]:
    """Of shards that are one whole, that of the whole; else only what all have in common."""
    first = found[0].manifest
    if together and together.is_one and len(together.given) == len(found):
        return dict(first.identity or {})
    common = {name: first.setting(name) for name in ("benchmark", "benchmark_digest")}
    # Every way that was used: one that knew hidden names must not be lost.
    ways = _distinct(each.manifest.setting("visible_tests") for each in found)
    return {**common, **({"visible_tests": "+".join(ways)} if ways else {})}


def _isolated(found: Sequence[RunHistory]) -> bool | None:
    """One that was not is not lost among others."""
    isolated = [each.manifest.agent.isolated for each in found]
    return None if None in isolated and False not in isolated else all(isolated)


def _distinct(values: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
