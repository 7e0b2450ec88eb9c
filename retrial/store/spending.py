"""What the journals of a run say was spent. Journals only grow: of one that has the size it had, the sums are known."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.store import integrity, journal
from retrial.store.json_io import fields_of, from_json, to_jsonl
from retrial.system.console import say

NAME = "sums.json"
"""Beside the journals. It saves reading them, and nothing is lost with it."""

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSums:
    """Of one journal."""

    size: int
    committed: float
    usage: Usage


def entries(folder: Path) -> dict[str, JournalSums]:
    """Of every journal in this folder, by file name, in order."""
    known, sizes = _known(folder), _sizes(folder)
    # What is missing, or has become smaller, was paid for all the same; one that was mended says so itself.
    kept = {
        name: entry
        for name, entry in known.items()
        if entry.size == sizes.get(name)
        or (entry.size > sizes.get(name, 0) and not integrity.was_mended(folder / name))
    }
    found = {name: kept.get(name) or _read(folder / name) for name in sorted({*sizes, *kept})}
    shrunk = [name for name in kept if found[name].size > sizes.get(name, 0)]
    if shrunk:
        say(f"note: {folder / shrunk[0]} is missing or smaller than it was; what it cost stays counted")
    return found


def content(folder: Path) -> bytes:
    """What to keep in the file `NAME` of this folder."""
    rows = {name: [each.size, _known_sum(each.committed), each.usage] for name, each in entries(folder).items()}
    return to_jsonl(rows)


def usage(lines: Iterable[Line]) -> Usage:
    """All that was paid for, in attempts that count and in those that do not."""
    total = Usage()
    for line in lines:
        if line.get("event") == "reply" and not line["reply"].get("recorded"):
            total += Usage(**fields_of(Usage, line["reply"]["usage"]))
        elif line.get("event") == "spent":
            total += Usage(**fields_of(Usage, line["usage"]))
    return total


def _known_sum(committed: float) -> float | None:
    """JSON has no number for a sum that is not known."""
    return committed if math.isfinite(committed) else None


def unknown_is_infinite(cost: float | None) -> float:
    """Return the cost, or infinity for one that is not known: it may be anything."""
    return math.inf if cost is None else float(cost)


def _sizes(folder: Path) -> dict[str, int]:
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as found:
        journals = [entry for entry in found if entry.name.endswith(".jsonl")]
    for entry in journals:
        if not entry.is_file():
            raise UsageError(f"{entry.path} is no file: put the journal back that was there, or remove it.")
    return {entry.name: entry.stat().st_size for entry in journals}


def _known(folder: Path) -> dict[str, JournalSums]:
    try:
        rows = from_json((folder / NAME).read_bytes())
        return {
            name: JournalSums(
                size=int(size), committed=unknown_is_infinite(sum), usage=Usage(**fields_of(Usage, usage))
            )
            for name, (size, sum, usage) in rows.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        # Missing, damaged or of another version: the journals say it all again.
        return {}


def _read(path: Path) -> JournalSums:
    found = path.read_bytes()
    lines = list(journal.read(found))
    try:
        return JournalSums(size=len(found), committed=committed(lines), usage=usage(lines))
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} was written by another version of Retrial, or by hand: move it away.") from error


def committed(lines: Iterable[Mapping[str, Any]]) -> float:
    """What a journal says was spent, or may have been: a question whose end is unknown counts with all that was put by
    for it."""
    return sum(sums_of(lines))


def sums_of(lines: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """What was spent for certain, and what may have been."""
    settled = unsettled = 0.0
    pending: dict[tuple[object, ...], float] = {}
    for line in lines:
        # Older runs do not number their calls: there each question followed the end of the one before, if it had one.
        place = tuple(line.get(name) for name in ("go", "attempt", "call"))
        match line.get("event"):
            case "request":
                unsettled += pending.pop(place, 0.0)
                pending[place] = unknown_is_infinite(line.get("reserved", 0.0))
            case "reply":
                cost = 0.0 if line["reply"].get("recorded") else line["reply"]["usage"]["cost"]
                put_by = pending.pop(place, math.inf)
                settled += put_by if cost is None else cost
            case "attempt_started" if line.get("spends"):
                # On its own: if it was killed, nobody knows what.
                pending[place] = math.inf
            case "attempt_ended":
                pending.pop(place, None)
            case "spent":
                pending.pop((*place[:2], None), None)
                settled += unknown_is_infinite(line["usage"]["cost"])
            case "lost":
                unsettled += unknown_is_infinite(line["cost"])
            case "failed":
                pending.pop(place, None)
    return settled, unsettled + sum(pending.values())
