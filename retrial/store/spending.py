"""What the journals of a run say was spent. Journals only grow: of one that has the size it had, the sums are known."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from retrial.chat import Usage, unknown_is_infinite
from retrial.errors import UsageError
from retrial.store import integrity, journal
from retrial.store.events import (
    AgentSpent,
    AttemptEnded,
    AttemptStarted,
    CallFailed,
    Event,
    Replied,
    ReplyLost,
    Requested,
)
from retrial.store.json_io import decode, from_json, to_jsonl
from retrial.system.console import say

NAME = "sums.json"
"""Beside the journals. It saves reading them, and nothing is lost with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSums:
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
    rows = {
        # JSON has no number for a sum that is not known.
        name: [each.size, each.committed if math.isfinite(each.committed) else None, each.usage]
        for name, each in entries(folder).items()
    }
    return to_jsonl(rows)


def usage(events: Iterable[Event]) -> Usage:
    """All that was paid for, in attempts that count and in those that do not."""
    total = Usage()
    for event in events:
        if isinstance(event, Replied) and not event.reply.recorded:
            total += event.reply.usage
        elif isinstance(event, AgentSpent):
            total += event.usage
    return total


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
            name: JournalSums(size=int(size), committed=unknown_is_infinite(sum), usage=decode(usage, Usage))
            for name, (size, sum, usage) in rows.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        # Missing, damaged or of another version: the journals say it all again.
        return {}


def _read(path: Path) -> JournalSums:
    found = path.read_bytes()
    events = list(journal.read(found, path))
    return JournalSums(size=len(found), committed=committed(events), usage=usage(events))


def committed(events: Iterable[Event]) -> float:
    """What a journal says was spent, or may have been: a question whose end is unknown counts with all that was put by
    for it."""
    return sum(sums_of(events))


def sums_of(events: Iterable[Event]) -> tuple[float, float]:
    """What was spent for certain, and what may have been."""
    settled = unsettled = 0.0
    pending: dict[tuple[object, ...], float] = {}
    for event in events:
        # Older runs do not number their calls: there each question followed the end of the one before, if it had one.
        place = (event.go, event.attempt, event.call)
        match event:
            case Requested():
                unsettled += pending.pop(place, 0.0)
                pending[place] = unknown_is_infinite(event.reserved)
            case Replied(reply=reply):
                cost = 0.0 if reply.recorded else reply.usage.cost
                put_by = pending.pop(place, math.inf)
                settled += put_by if cost is None else cost
            case AttemptStarted(spends=True):
                # On its own: if it was killed, nobody knows what.
                pending[place] = math.inf
            case AttemptEnded() | CallFailed():
                pending.pop(place, None)
            case AgentSpent():
                pending.pop((event.go, event.attempt, None), None)
                settled += unknown_is_infinite(event.usage.cost)
            case ReplyLost():
                unsettled += unknown_is_infinite(event.cost)
    return settled, unsettled + sum(pending.values())
