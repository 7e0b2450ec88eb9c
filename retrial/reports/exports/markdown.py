"""A summary for the page of a CI's job, such as that of $GITHUB_STEP_SUMMARY."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from retrial.reports import tally
from retrial.reports.exports import Export, objections
from retrial.reports.exports.cases import CaseKind, ExportedCase, every
from retrial.reports.exports.text import NAMED, code
from retrial.store.runs import Run
from retrial.system.console import money, pluralise

ROWS = 300
"""Of unresolved tasks. With every cell as long as it may be, all of it stays below the 1 MiB that GitHub takes."""
FEW = 50
"""Of any other table."""
NAMES = 10
FAILURE = 500
"""Characters of why an agent did not work."""


def render(run: Run, content: Mapping[str, Any]) -> bytes:
    cases = every(content)
    parts = [
        *_head(run, content),
        *_titled("By language", _languages(content["by_language"])),
        *_titled("By rung", _ladder(content["ladder"])),
        *_titled("By model", [] if content["ladder"] else _models(content["by_model"])),
        *_titled("Not measured", _reasons(case for case in cases if case.kind is CaseKind.NOT_MEASURED)),
        *_titled("Skipped", _reasons(case for case in cases if case.kind is CaseKind.SKIPPED)),
        *_titled("Void here", _reasons(case for case in cases if case.kind is CaseKind.VOID)),
        *_titled("Patches to look at", _tampering(content)),
        *_unresolved([case for case in cases if case.kind is CaseKind.UNRESOLVED]),
    ]
    return ("\n".join(parts).rstrip() + "\n").encode()


def _head(run: Run, content: Mapping[str, Any]) -> Iterator[str]:
    rate = content["rate"]
    yield f"## {rate['percent']:.1f} % resolved" if rate["of"] else "## Nothing was measured"
    yield ""
    measured = f"{_percent(rate)} measured" if rate["of"] else "no rate"
    yield f"{code(run.name)} on {code(content['benchmark'])}: {measured}."
    if content.get("agent_failed"):
        yield ""
        yield code(content["agent_failed"], FAILURE)
    yield ""
    yield from (f"- {fact}" for fact in _facts(content))
    yield ""


def _facts(content: Mapping[str, Any]) -> Iterator[str]:
    rate, whole, clean = content["rate"], content["rate_of_benchmark"], content["rate_calibrated"]
    if whole["of"] != rate["of"]:
        yield f"Of the whole benchmark, what is missing counted as unresolved: {_percent(whole)}."
    if content.get("prior"):
        yield (
            f"Only the tasks for which {_names(content['prior'])} found no plausible edit were run (--prior); "
            "the rate covers only those."
        )
    if content["void"]:
        yield f"Without tasks that are void here: {_percent(clean)}."
    if rate["attempts"] != "1":
        yield "Tasks were tried again from scratch."
    if rate["visible_is_hidden"]:
        yield "The visible tests are the acceptance tests."
    if objections.hidden_known(content):
        yield "**The visible tests were chosen by the hidden ones.**"
    if content["agent_isolated"] is False:
        yield "**The agent was not isolated.**"
    if content["official_differs"]:
        yield f"**The official verdict is another** for {_names(content['official_differs'])}."
    if content["ladder"]:
        yield f"Spent: {money(content['spent']['cost'])}."
    sandbox = content["provenance"].get("sandbox", {})
    yield f"Scored by Retrial {content['provenance'].get('retrial', '')} in {code(sandbox.get('sandbox', 'unknown'))}."


def _percent(rate: Mapping[str, Any]) -> str:
    return (
        f"{rate['percent']:.1f} % (95 % interval {rate['low']:.1f} to {rate['high']:.1f}), "
        f"{rate['resolved']} of {rate['of']}"
    )


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "", *lines, ""] if lines else []


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], most: int = FEW) -> list[str]:
    """Nothing of nothing; what there is no room for is counted."""
    if not rows:
        return []
    lines = [_cells(header), _cells(["---"] * len(header)), *map(_cells, rows[:most])]
    more = len(rows) - most
    return [*lines, "", f"… and {more} more, in results.json."] if more > 0 else lines


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _languages(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            code(name, NAMED),
            str(row["of"]),
            str(row["resolved"]),
            f"{row['percent']:.1f} %",
            f"{row['tests']['passed']} of {row['tests']['total']}",
        )
        for name, row in found.items()
    ]
    return _table(("language", "measured", "resolved", "rate", "tests passed"), rows)


def _ladder(rungs: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            code(row["rung"], NAMED),
            str(row["tasks"]),
            str(row["attempts"]),
            str(row["plausible"]),
            str(row["resolved"]),
            str(row["num_malformed_responses"]),
            f"{row['prompt_tokens']:,} / {row['completion_tokens']:,}",
            money(row["cost"]),
        )
        for row in rungs
    ]
    header = ("rung", "tasks", "attempts", "plausible", "resolved", "malformed", "tokens in / out", "cost")
    return _table(header, rows)


def _models(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [(code(name, NAMED), _percent(row["rate"])) for name, row in found.items() if "rate" in row]
    return _table(("model", "resolved"), rows)


def _reasons(cases: Iterable[ExportedCase]) -> list[str]:
    """Each reason once, with what it holds for."""
    found = dict[str, list[str]]()
    for case in cases:
        found.setdefault(code(case.reason), []).append(case.instance_id)
    most_first = sorted(found.items(), key=lambda item: -len(item[1]))
    return _table(("tasks", "reason", "which"), [(str(len(ids)), why, _names(ids)) for why, ids in most_first])


def _names(ids: Sequence[str]) -> str:
    more = len(ids) - NAMES
    return ", ".join(code(name, NAMED) for name in ids[:NAMES]) + (f" and {more} more" if more > 0 else "")


def _tampering(content: Mapping[str, Any]) -> list[str]:
    by_id = {row["instance_id"]: row for row in content["instances"]}
    rows = []
    for name in content["tamper"]["review"]:
        row = by_id.get(name, {})
        tamper = row.get("tamper", {})
        touched = ", ".join(str(each["path"]) for each in tamper.get("touched", ()))
        said = f"tampered ({tamper['rule']})" if tamper.get("rule") else row.get("outcome", "")
        counts = [str(len(tamper.get(kind, ()))) for kind in ("changed", "suspicious")]
        rows.append((code(name, NAMED), code(said, NAMED), code(touched), *counts))
    return _table(("task", "verdict", "touched", "tests changed", "suspicious lines"), rows)


def _passed(row: Mapping[str, Any]) -> str:
    """Of those that must pass, where the benchmark says which these are."""
    return "{} of {}".format(*tally.passed(row))


def _unresolved(cases: Sequence[ExportedCase]) -> list[str]:
    rows = [
        (
            code(case.instance_id, NAMED),
            case.outcome.replace("_", " "),
            _passed(case.row),
            code(case.reason),
        )
        for case in cases
    ]
    if not rows:
        return []
    listed = _table(("task", "outcome", "tests passed", "reason"), rows, ROWS)
    return ["<details>", f"<summary>{pluralise(len(rows), 'unresolved task')}</summary>", "", *listed, "", "</details>"]


def make() -> Export:
    return render
