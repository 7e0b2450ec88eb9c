"""What a run's page shows at a glance, and the rows of its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from retrial.reports import tally
from retrial.reports.page import charts
from retrial.types import Outcome

COLUMNS = (
    *(("Instance", "text", "w1"), ("Language", "text", "w7"), ("Outcome", "text", "w2"), ("Tests", "number", "w3")),
    *(("Model", "text", "w5"), ("Format", "text", "w4"), ("Try", "number", "w3"), ("Cost (USD)", "number", "w4")),
    *(("Tokens in / out", "number", "w2"), ("Test time", "number", "w3"), ("Why", "text", "w6")),
)
"""Name, how it is sorted, how wide it is."""
REASON = 300


def build(content: Mapping[str, Any]) -> dict[str, Any]:
    rows = [_row(place, row) for place, row in enumerate(content["instances"])]
    known = {row["instance_id"] for row in rows}
    rows += [_left_out(key, why, "not_measured") for key, why in content["not_measured"].items() if key not in known]
    rows += [_left_out(key, why, "skipped") for key, why in content["skipped"].items()]
    aider = content["aider"]
    gaps = {name: _by_reason(content[name]) for name in ("not_measured", "skipped", "void")}
    return {
        "charts": _drawn(content),
        "columns": COLUMNS,
        "rows": rows,
        "filters": [(name, _values(rows, name)) for name in ("language", "outcome", "model")],
        "names": list(content["by_model"]),
        "known": bool(aider),
        "date": aider.get("date", ""),
        "command": aider.get("command", ""),
        "gaps": any(gaps.values()),
        **gaps,
        "uneven": len({row["of"] for row in content["by_model_and_format"]}) > 1,
    }


def _row(place: int, row: Mapping[str, Any]) -> dict[str, Any]:
    passed, total = tally.passed(row)
    tokens = (row["prompt_tokens"], row["completion_tokens"])
    odd = any(row["tamper"][name] for name in ("touched", "changed", "suspicious"))
    return {
        "place": place,
        "instance_id": row["instance_id"],
        "language": row["language"] or "–",
        "outcome": str(row["outcome"]),
        "family": Outcome(row["outcome"]).family.replace(" ", "_"),
        "flags": [*(["void"] if row["void"] else []), *(["look at it"] if odd else [])],
        "passed": passed / total if total else None,
        "tests": tally.shown(row, "–"),
        "model": row["model"] or row["model_name_or_path"],
        "edit_format": row["edit_format"] or "–",
        "order": row["try"] + row["tries"] / 1000 if row["tries"] else None,
        "tried": f"{row['try']} of {row['tries']}" if row["tries"] else "–",
        "cost": row["cost"],
        "tokens": None if None in tokens else tokens,
        "seconds": row["seconds"],
        "reason": _short(row["reason"]),
    }


def _left_out(instance_id: str, why: str, outcome: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("place", "order", "cost", "tokens", "seconds"))
    dashes = dict.fromkeys(("language", "model", "edit_format", "tests", "tried"), "–")
    return {
        **nothing,
        **dashes,
        "instance_id": instance_id,
        "outcome": outcome,
        "family": "not_measured",
        "flags": [],
        "passed": None,
        "reason": _short(why),
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[: REASON // 2]} … {line[-REASON // 2 :]}"


def _values(rows: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    return sorted({row[name] for row in rows})


def _by_reason(reasons: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Each reason once, the most frequent first."""
    found: dict[str, list[str]] = {}
    for instance_id, why in reasons.items():
        found.setdefault(_short(why), []).append(instance_id)
    return sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))


def _drawn(content: Mapping[str, Any]) -> dict[str, Markup | None]:
    by_language, rows = content["by_language"], content["by_model_and_format"]
    rates = {"resolved": [charts.interval(row) for row in by_language.values()]}
    names = [f"{name} {row['percent']:.1f} %" for name, row in by_language.items()]
    return {
        "formats": charts.divided(
            "formats",
            [f"{row['model']}, {row['edit_format']} {row['percent']:.1f} %" for row in rows],
            [row["percent"] for row in rows],
            [100 * row["pass_num_1"] / row["of"] if row["of"] and "pass_num_1" in row else None for row in rows],
        ),
        "languages": charts.bars("languages", names, rates),
        "economics": _worth(content),
        "tokens": _over_tokens(content),
    }


def _worth(content: Mapping[str, Any]) -> Markup | None:
    """What the ladder solved as it was climbed; nothing where nothing was paid, or there was one rung."""
    rungs = content["economics"].get("rungs", ())
    climbed = [(row["cumulative_cost"], row["cumulative_percent"]) for row in rungs if row["cumulative_cost"]]
    return charts.points("economics", {"the ladder": climbed}, "USD") if len(climbed) > 1 else None


def _over_tokens(content: Mapping[str, Any]) -> Markup | None:
    """Of those that met the same tasks: later rungs see only what is left."""
    of = content["rate"]["of"]
    found = {
        f"{row['model']}, {row['edit_format']}": [(row["prompt_tokens"] + row["completion_tokens"], row["percent"])]
        for row in content["by_model_and_format"]
        if row["of"] == of and row["prompt_tokens"]
    }
    return charts.points("tokens", found, "tokens, in and out") if len(found) > 1 else None
