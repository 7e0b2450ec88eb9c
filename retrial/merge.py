"""Several runs as one result: of each task the first plausible prediction in the order given, else the least bad."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial import __version__, past
from retrial.attempts import Usage
from retrial.errors import UsageError
from retrial.past import Past
from retrial.progress import say
from retrial.store import Run, find_run

LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One run made of several; nothing of it is on disk yet."""

    past: Past
    chats: Mapping[str, str]


def merge(home: Path, texts: Sequence[str], name: str = "") -> Merged:
    """The runs of these names or paths as one run, called `name` or after all of them.

    Raises: UsageError for what is no run of harness.py, twice the same, or runs of different benchmarks.
    """
    sources = [_source(home, text) for text in texts]
    names = [source.run.name for source in sources]
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise UsageError(f"Run '{twice[0]}' is named twice.")
    first = sources[0].identity
    past.refuse_other_benchmark(sources[1:], first.get("benchmark"), first.get("benchmark_digest"))
    run = _target(home, name or "+".join(names), names)
    config = _config(run, sources)
    chosen = {key: _choose(key, sources) for key in sorted({key for source in sources for key in source.records})}
    records = {key: {**_record(key, sources, best), **_name(config)} for key, best in chosen.items()}
    chats = {key: best.run.chat(key) for key, best in chosen.items()}
    return Merged(past=Past(run=run, stored=config, records=records), chats=chats)


def write(merged: Merged) -> None:
    """On disk as any run's; what an earlier merge of that name had and this one has not is gone."""
    run = merged.past.run
    if run.exists():
        run.keep_only(merged.past.records)
    run.write_config(merged.past.stored)
    for instance_id, record in merged.past.records.items():
        run.write_prediction(instance_id, record, merged.chats[instance_id])


def _source(home: Path, text: str) -> Past:
    run = find_run(home, text)
    if run is None:
        raise UsageError(f"{text} is no run: only runs of harness.py can be made one result.")
    if past.is_merged(run.config()):
        raise UsageError(f"Run '{run.name}' is itself made of several: name those.")
    return past.read(run)


def _target(home: Path, name: str, names: Sequence[str]) -> Run:
    if len(name) > LONGEST:
        raise UsageError("The runs' names together are too long for one: name the result with --run.")
    run = Run(home, name)
    if name in names:
        raise UsageError(f"Run '{name}' is one of those to be made one result: give that another name with --run.")
    stored = run.config() if run.exists() else {}
    if stored and not past.is_merged(stored):
        raise UsageError(f"There is a run '{name}' already that was not made of several: name another with --run.")
    if stored and stored["sources"] != list(names):
        say(f"note: run '{name}' was made of {', '.join(stored['sources'])}; it is made anew")
    return run


def _choose(instance_id: str, sources: Sequence[Past]) -> Past:
    """Of equals the earliest."""
    having = [source for source in sources if instance_id in source.records]
    return min(having, key=lambda source: past.rank(source.records[instance_id]))


def _record(instance_id: str, sources: Sequence[Past], best: Past) -> dict[str, Any]:
    """The best record, with the attempts of all sources: they were all made and paid for."""
    record, attempts, number = best.records[instance_id], list[dict[str, Any]](), None
    for source in sources:
        for attempt in source.records.get(instance_id, {}).get("all_results", ()):
            if source is best and attempt["try"] == record["try"]:
                number = len(attempts) + 1
            attempts.append({**attempt, "try": len(attempts) + 1, "dname": source.run.name})
    if number is None:
        path = best.run.prediction_path(instance_id)
        raise UsageError(f"{path} is not a whole prediction: its try {record['try']} is not in all_results.")
    return {**record, "dname": best.run.name, "try": number, "tries": len(attempts), "all_results": attempts}


def _name(config: Mapping[str, Any]) -> dict[str, str]:
    return {"model_name_or_path": str(config["model_name_or_path"])}


def _config(run: Run, sources: Sequence[Past]) -> dict[str, Any]:
    first = sources[0]
    done = {key for source in sources for key in source.records}
    reasons = {key: why for source in reversed(sources) for key, why in source.not_predicted.items() if key not in done}
    skipped = {key: why for source in reversed(sources) for key, why in source.skipped.items()}
    return {
        "program": "report.py",
        "run": run.name,
        "sources": [source.run.name for source in sources],
        "command": " && ".join(_distinct(source.stored.get("command") for source in sources)),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "identity": {
            "benchmark": first.identity.get("benchmark"),
            "benchmark_digest": first.identity.get("benchmark_digest"),
            **_visible_tests(sources),
        },
        "agent": {"isolated": _isolated(sources)},
        "provenance": first.stored.get("provenance", {}),
        "model_name_or_path": "+".join(_distinct(source.stored.get("model_name_or_path") for source in sources)),
        "selected": sorted({key for source in sources for key in source.selected}),
        # What one machine had to skip, another may have begun.
        "skipped": {key: why for key, why in sorted(skipped.items()) if key not in done and key not in reasons},
        "not_predicted": dict(sorted(reasons.items())),
        "spent": sum((source.run.spent() for source in sources), Usage()),
        "versions": {"retrial": __version__},
    }


def _isolated(sources: Sequence[Past]) -> bool | None:
    """One that was not is not lost among others."""
    found = [source.stored.get("agent", {}).get("isolated") for source in sources]
    return None if None in found and False not in found else all(found)


def _visible_tests(sources: Sequence[Past]) -> dict[str, str]:
    """Every way that was used: one that knew hidden names must not be lost."""
    found = _distinct(source.identity.get("visible_tests") for source in sources)
    return {"visible_tests": "+".join(found)} if found else {}


def _distinct(values: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
