"""`eval_results.yaml`: an entry for `.eval_results/` of a model's repository on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator

from retrial.reports.exports import Export, entry, line, made_elsewhere, model_names, objections
from retrial.reports.records import Results
from retrial.store.runs import Run

VERIFIED = ("SWE-bench/SWE-bench_Verified", "swe_bench_%_resolved")
LITE = ("SWE-bench/SWE-bench_Lite", "swe_bench_lite_%_resolved")
BOARDS = {"swe-bench-verified": VERIFIED, VERIFIED[0]: VERIFIED, "swe-bench-lite": LITE, LITE[0]: LITE}
"""What `-b` was given → id of the data set and of its task; a copy that lies elsewhere may have been changed."""
LONGEST = 500


def render(run: Run, results: Results) -> bytes | None:
    """None for benchmarks without such a leaderboard, for what no model made, and for an agent that did not work."""
    source = str(results.provenance.get("benchmark", {}).get("source", ""))
    board = BOARDS.get(source.removesuffix(":test"))
    if board is None or "kind" in results.provenance or results.agent_failed:
        return None
    dataset, task = board
    started = run.manifest().started if run.exists() else ""
    found = {
        "dataset": {"id": dataset, "task_id": task},
        "value": results.rate_of_benchmark.percent,
        **({"date": started} if started else {}),
        "notes": "; ".join(_notes(results)),
    }
    return entry(_remarks(run, results), found, LONGEST * 8)


def _notes(results: Results) -> Iterator[str]:
    """The setup, in a line."""
    rate, whole = results.rate, results.rate_of_benchmark
    yield f"Retrial {results.provenance.get('retrial', '')}".strip()
    yield line(", ".join(model_names(results)), LONGEST)
    yield "attempts unknown" if made_elsewhere(results) else f"attempts {rate.attempts}"
    yield f"{whole.resolved} of {whole.of} resolved, {rate.of} measured, the rest counted as unresolved"
    if "original" in str(results.visible_tests):
        yield "visible tests chosen by the hidden ones"
    if results.agent_isolated is False:
        yield "agent not isolated"


def _remarks(run: Run, results: Results) -> Iterator[str]:
    yield "For .eval_results/ of the model's repository. To say where it can be looked up, add"
    yield "source: {url: …, name: …, user: …}."
    yield from (f"Against it: {line(each, LONGEST)}" for each in objections.sentences(run, results))


def make() -> Export:
    return render
