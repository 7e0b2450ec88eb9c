"""What a run has so far, read back: for scoring it, for making one result of several, for going on after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retrial.errors import UsageError
from retrial.store.events import AttemptsDiscarded, TaskNotMeasured
from retrial.store.manifest import GROUPS, Manifest, utc_now
from retrial.store.records import PredictionSummary, summary
from retrial.store.runs import SAFE, Run
from retrial.system.console import NOTE, one_line, pluralise, say

AGENT_FAILED = "the agent never worked: every attempt of this run ended with an error and an empty patch"
"""Why tasks of such a run are not measured.

This is decided for a run as a whole. One attempt that ended without an error, or changed a file, shows that the agent
works here; from then on every attempt counts, so no program can leave the denominator by failing (decision 0010).
"""
UNFINISHED = "phase 1 has not finished it: run the same harness.py command again"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """A run with predictions: one of harness.py, or one made of several."""

    run: Run
    manifest: Manifest
    records: Mapping[str, PredictionSummary]
    """Its predictions, by id."""
    patches: Mapping[str, str]
    """Those that were chosen, by id."""

    @property
    def selected(self) -> set[str]:
        return {*self.manifest.selected, *self.records}

    @property
    def skipped(self) -> dict[str, str]:
        return {key: why for key, why in self.manifest.skipped.items() if key not in self.records}

    @property
    def not_predicted(self) -> dict[str, str]:
        """Selected, not skipped and not finished: id → reason."""
        missing = sorted(self.selected - set(self.records) - set(self.skipped))
        return {instance_id: self._why_open(instance_id) for instance_id in missing}

    def _why_open(self, instance_id: str) -> str:
        events = self.run.journal(instance_id).events()
        reasons = [event.reason for event in events if isinstance(event, TaskNotMeasured)]
        # A run made of several has no journals.
        return reasons[-1] if reasons else self.manifest.not_predicted.get(instance_id, UNFINISHED)


def find_run(home: Path, text: str) -> Run | None:
    """A run by its name, or by any path inside its folder; None for a file from elsewhere.

    Raises: UsageError when there is neither.
    """
    path = Path(text)
    if SAFE.fullmatch(text) and Run(home, text).exists():
        return Run(home, text)
    folder = (home / "predictions").resolve()
    if path.exists() and folder in path.resolve().parents:
        return Run(home, path.resolve().relative_to(folder).parts[0])
    if path.exists():
        return None
    if "/" in text or path.suffix in (".json", ".jsonl"):
        raise UsageError(f"There is no file {text}.")
    raise UsageError(f"There is no run and no file '{text}'.")


def latest_run(home: Path) -> str:
    """The run of harness.py that was started last; its grid, if it belongs to one."""
    now, found = utc_now(), []
    names = sorted(path.name for path in (home / "predictions").glob("*"))
    for run in (Run(home, name) for name in names if SAFE.fullmatch(name)):
        if not run.exists():
            continue
        try:
            manifest = run.manifest()
        except UsageError as error:
            # Another run's broken file is no reason not to find this one.
            say(f"{NOTE}run '{run.name}' is passed over: {error}")
            continue
        if manifest.program == "harness.py":
            started = manifest.started
            # What has not come yet was written by a clock that was wrong.
            found.append((started <= now, started, manifest.grid or run.name))
    if not found:
        raise UsageError("There is no run yet: start one with 'python harness.py'.")
    return max(found)[-1]


def identified(run: Run) -> Manifest:
    """Return its run.json. Raises: UsageError when that does not say what the run is."""
    manifest = run.manifest()
    if manifest.identity is None:
        raise UsageError(f"{run.config_path} does not say what the run is: its identity is missing.")
    return manifest


def read(run: Run) -> RunHistory:
    """Raises: UsageError when it has no predictions of phase 1, or they cannot be read."""
    run.refuse_links()
    manifest = run.manifest()
    if kind := manifest.group:
        raise UsageError(f"'{run.name}' is {GROUPS[kind]}: name one of its runs, such as '{manifest.runs[0].run}'.")
    identified(run)
    if not manifest.holds_predictions:
        raise UsageError(f"Run '{run.name}' was made from a file or by --gold or --null, not by harness.py.")
    records, patches = dict[str, PredictionSummary](), dict[str, str]()
    for record in run.predictions():
        records[record.instance_id] = summary(record)
        patches[record.instance_id] = record.model_patch or ""
    return RunHistory(run=run, manifest=manifest, records=records, patches=patches)


def prediction_summaries(run: Run, instance_ids: Iterable[str]) -> dict[str, PredictionSummary]:
    """Of those of these tasks that are done, by id."""
    found = ((instance_id, run.prediction(instance_id)) for instance_id in instance_ids)
    return {instance_id: summary(record) for instance_id, record in found if record is not None}


def refuse_other_benchmark(pasts: Iterable[RunHistory], source: object, digest: object) -> None:
    """Raises: UsageError naming the first that is not about exactly this benchmark."""
    for past in pasts:
        found = past.manifest.setting("benchmark")
        if found != source:
            raise UsageError(f"Run '{past.run.name}' is about {found}, not {source}: runs must share a benchmark.")
        if past.manifest.setting("benchmark_digest") != digest:
            raise UsageError(f"Run '{past.run.name}' is about another state of {source}: runs must share a benchmark.")


def is_done_again(run: Run, done: Mapping[str, PredictionSummary], open_tasks: Collection[str]) -> bool:
    """Return whether all tasks of a finished run are to be done again because its agent never worked.

    Until the run is finished its attempts stay: an agent that fails the first tasks may work on the next.
    `done` and `open_tasks` are the tasks that are selected now, with a prediction and without.
    """
    if open_tasks or not why_agent_failed(run, done):
        return False
    manifest = run.manifest()
    return not set(manifest.selected) - set(manifest.skipped) - set(_predictions(run))


def why_agent_failed(run: Run, done: Mapping[str, PredictionSummary]) -> str:
    """`agent_failure` of all predictions that a run has; `done` are those of the tasks that are selected now."""
    # Mostly the tasks at hand show that the agent works, and no others need to be read.
    return agent_failure(done.values()) and agent_failure(_predictions(run).values())


def discard_attempts(run: Run) -> None:
    """Set aside all attempts of a run whose agent never worked, so that its tasks are done again.

    The journals keep them, with what they cost.
    """
    for instance_id in _predictions(run):
        run.journal(instance_id).append(AttemptsDiscarded(reason=AGENT_FAILED))
    run.keep_only(())


def agent_failure(records: Iterable[PredictionSummary]) -> str:
    """Say that the agent never worked in these attempts, with its most frequent error; empty if it did, or if there are
    no attempts."""
    attempts = [attempt for record in records for attempt in record.all_results]
    if not attempts or not all(attempt.agent_error and not attempt.patch_id for attempt in attempts):
        return ""
    error, times = Counter(attempt.agent_error for attempt in attempts).most_common(1)[0]
    every = "its only attempt" if len(attempts) == 1 else f"all {pluralise(len(attempts), 'attempt')}"
    often = f" ({times} times)" if 1 < times < len(attempts) else ""
    return one_line(
        f"The agent never worked: {every} failed with an empty patch, so no rate is reported. Error: {error}{often}"
    )


def _predictions(run: Run) -> dict[str, PredictionSummary]:
    """All that are whole: what is damaged is set aside elsewhere."""
    return prediction_summaries(run, run.manifest().selected)
