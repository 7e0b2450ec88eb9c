"""The summary of aider's benchmark, every field under its own name; and what the aider SWE-bench harness printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrial import __version__
from retrial.chat import Usage
from retrial.reports.analysis.cases import Case, ScoredRow, answered
from retrial.reports.analysis.stats import percent, rounded, total
from retrial.store.json_io import FLAT
from retrial.store.manifest import Manifest
from retrial.store.records import PredictionSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well first attempts were written."""

    turns: Mapping[str, float] = field(metadata=FLAT)
    """`pass_rate_1`, `pass_rate_2`, …, then `pass_num_1`, …: for as many turns as there were."""
    percent_cases_well_formed: float
    num_with_malformed_responses: int
    num_malformed_responses: int
    lazy_comments: int
    syntax_errors: int
    indentation_errors: int
    test_timeouts: int
    error_outputs: int
    user_asks: int
    exhausted_context_windows: int
    seconds_per_case: float

    def pass_rate(self, turn: int) -> float | None:
        return self.turns.get(f"pass_rate_{turn}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AiderSummary:
    """`aider` of results.json: every field under the name that aider's benchmark gives it."""

    dirname: str
    test_cases: int
    model: str
    edit_format: str
    editor_model: str | None = None
    editor_edit_format: str | None = None
    commit_hash: str = __version__
    reasoning_effort: str | None
    thinking_tokens: int | None = None
    quality: Quality = field(metadata=FLAT)
    prompt_tokens: int
    completion_tokens: int
    total_tests: int
    command: str
    date: str
    versions: str = __version__
    total_cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What the aider SWE-bench harness printed. What only phase 1 knows is null for predictions made elsewhere."""

    percent: float | None
    plus_one_percent: float | None
    plausible: int | None = None
    plausible_percent: float | None = None
    resolved_plausible: int | None = None
    resolved_plausible_percent: float | None = None
    unverified: int | None = None
    resolved_unverified: int | None = None
    gold_files_found: int
    gold_files_found_percent: float | None
    resolved_gold_files_found: int
    spent: float | None
    cost_per_instance: float | None
    expected_cost: float | None


def build(run: str, cases: Sequence[Case], manifest: Manifest) -> AiderSummary | None:
    """Return the summary of aider's benchmark; None for predictions made elsewhere, whose chats are not known.

    All of it counts the *first* attempt only: a retry from scratch would make `pass_rate_i` pass@k.
    """
    cases = answered(cases)
    if not cases:
        return None
    first = [case.first for case in cases]
    cost = total(attempt.cost for attempt in first)
    return AiderSummary(
        dirname=run,
        test_cases=len(cases),
        model=", ".join(sorted({attempt.model for attempt in first})),
        edit_format=", ".join(sorted({attempt.edit_format for attempt in first})),
        reasoning_effort=_reasoning_effort(manifest) or None,
        quality=quality(cases, max(len(case.turns) for case in cases)),
        prompt_tokens=sum(attempt.prompt_tokens for attempt in first),
        completion_tokens=sum(attempt.completion_tokens for attempt in first),
        total_tests=len(cases),
        command=manifest.command,
        date=manifest.started[:10],
        total_cost=None if cost is None else round(cost, 4),
    )


def _reasoning_effort(manifest: Manifest) -> str:
    """Of the run, or of its models where they differ."""
    own = [each.get("reasoning_effort") for each in manifest.setting("model_options") or ()]
    effort = str(manifest.setting("reasoning_effort") or "")
    return ", ".join(dict.fromkeys(str(each) for each in own if each)) or effort


def quality(cases: Sequence[Case], turns: int) -> Quality:
    """Of at least one case."""
    first = [case.first for case in cases]
    passed = {turn: sum(any(case.turns[:turn]) for case in cases) for turn in range(1, turns + 1)}
    malformed = sum(attempt.num_malformed_responses > 0 for attempt in first)
    return Quality(
        turns={
            **{f"pass_rate_{turn}": round(100 * count / len(cases), 1) for turn, count in passed.items()},
            **{f"pass_num_{turn}": count for turn, count in passed.items()},
        },
        percent_cases_well_formed=round(100 * (1 - malformed / len(cases)), 1),
        num_with_malformed_responses=malformed,
        num_malformed_responses=sum(attempt.num_malformed_responses for attempt in first),
        lazy_comments=sum(attempt.lazy_comments for attempt in first),
        syntax_errors=sum(attempt.syntax_errors for attempt in first),
        indentation_errors=sum(attempt.indentation_errors for attempt in first),
        test_timeouts=sum(attempt.test_timeouts for attempt in first),
        error_outputs=sum(attempt.num_error_outputs for attempt in first),
        user_asks=sum(attempt.num_user_asks for attempt in first),
        exhausted_context_windows=sum(attempt.num_exhausted_context_windows for attempt in first),
        seconds_per_case=round(sum(attempt.model_seconds for attempt in first) / len(cases), 1),
    )


def build_statistics(
    measured: Sequence[ScoredRow], records: Mapping[str, PredictionSummary], spent: Usage, benchmark_size: int
) -> Statistics:
    """Return how often plausible was right, gold files found, and costs. All shares are of what was measured."""
    resolved, found = _resolved(measured), [row for row in measured if row.finds_gold_file]
    costs = [sum_cost(record) for record in records.values()]
    whole = total(costs) if costs else None
    average = None if whole is None else whole / len(costs)
    statistics = Statistics(
        percent=percent(resolved, len(measured)),
        plus_one_percent=percent(resolved + 1, len(measured) + 1),
        gold_files_found=len(found),
        gold_files_found_percent=percent(len(found), len(measured)),
        resolved_gold_files_found=_resolved(found),
        spent=spent.cost if records else None,
        cost_per_instance=rounded(average),
        expected_cost=None if average is None else round(average * benchmark_size, 4),
    )
    if not records:
        return statistics
    known = [(row, records[row.task.instance_id]) for row in measured if row.task.instance_id in records]
    plausible = [row for row, record in known if record.plausible]
    unverified = [row for row, record in known if record.unverified]
    return replace(
        statistics,
        plausible=len(plausible),
        plausible_percent=percent(len(plausible), len(measured)),
        resolved_plausible=_resolved(plausible),
        resolved_plausible_percent=percent(_resolved(plausible), len(plausible)),
        unverified=len(unverified),
        resolved_unverified=_resolved(unverified),
    )


def sum_cost(record: PredictionSummary | None) -> float | None:
    """Return the cost of all attempts at one task; None is unknown."""
    costs = [attempt.cost for attempt in record.all_results] if record else []
    return rounded(total(costs)) if costs else None


def _resolved(rows: Sequence[ScoredRow]) -> int:
    return sum(row.verdict.resolved for row in rows)
