"""What stands against handing a result in, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from retrial.reports.exports import NAMED, code, made_elsewhere
from retrial.reports.exports.preds import rows
from retrial.reports.records import Results
from retrial.store.runs import Run
from retrial.system.console import first_few as some_of
from retrial.system.console import pluralise

FORBIDDEN = "original"
"""Of `--visible-tests`: the files of the hidden tests were known."""


def sentences(run: Run, results: Results) -> list[str]:
    predictions = rows(run)
    return [
        *_rules(results),
        *_gaps(results, {row["instance_id"] for row in predictions}),
        *_doubts(results),
        *_names({row["model_name_or_path"] for row in predictions}),
    ]


def official(run: Run) -> bool:
    """The benchmark has a grading of its own, and leaderboards that take it."""
    return run.official_path.is_file()


def hidden_known(results: Results) -> bool:
    # Joined with + where several runs were made one.
    return FORBIDDEN in str(results.visible_tests).split("+")


def pass_at_k(results: Results) -> bool:
    """Retried from scratch, until the acceptance tests passed."""
    return results.rate.attempts != "1" and bool(results.rate.visible_is_hidden)


def _rules(results: Results) -> Iterator[str]:
    if results.agent_failed:
        yield results.agent_failed
    if hidden_known(results):
        yield "Visible tests were chosen by the hidden ones (--visible-tests original), which is not allowed."
    if pass_at_k(results):
        yield "Tasks were retried until the acceptance tests passed: that is pass@k, which is not allowed."
    if results.agent_isolated is False:
        yield "The agent was not isolated (--agent-on-host): it may have seen anything on that machine."
    if made_elsewhere(results):
        yield "The predictions were made elsewhere: how, and in how many attempts, is not known here."


def _gaps(results: Results, predicted: set[str]) -> Iterator[str]:
    size = results.rate_of_benchmark.of
    if missing := size - len(predicted):
        yield f"{missing} of {size} tasks have no prediction: leaderboards count them as unresolved."
    if unmeasured := sorted(predicted.intersection(results.not_measured)):
        yield f"{pluralise(len(unmeasured), 'task')} could not be measured: run report.py again ({_some(unmeasured)})."
    if skipped := sorted(predicted.intersection(results.skipped)):
        yield f"Skipped for want of a toolchain: {_some(skipped)}."


def _doubts(results: Results) -> Iterator[str]:
    tamper = results.tamper
    if tamper.tampered:
        yield f"Patches that tampered with their tests: {tamper.tampered}."
    if tamper.review:
        yield f"A person should look at what these patches touch or contain: {_some(tamper.review)}."
    if results.official_differs:
        yield f"Our verdict is not the official one here: {_some(results.official_differs)}."
    if results.void:
        yield f"The reference fails on this machine, or says nothing: {_some(sorted(results.void))}."


def _names(models: set[str]) -> Iterator[str]:
    if len(models) > 1:
        yield f"The predictions have {len(models)} values of model_name_or_path, and sb-cli takes one."


def _some(ids: Iterable[str]) -> str:
    return some_of([code(each, NAMED) for each in ids])
