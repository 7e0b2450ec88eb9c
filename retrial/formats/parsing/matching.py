"""Find the lines that a model wants replaced: tolerant of how models copy, never silently a wrong place.

For lines that are not in the file, quote those that are most like them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from retrial.chat import Fault
from retrial.formats import joined, shorten

NOWHERE = (
    "There are no lines to replace, and the file is not empty. Repeat the lines next to which the new ones belong."
)
UNCHANGED = "The new lines are the same as the lines to replace, so this edit changes nothing. Leave it out or mend it."
SEVERAL = """\
The lines to replace are in the file {count} times, at lines {places}. Add lines that stand before or after them \
in the file, copied exactly, until they are there only once."""
MISSING = "The lines to replace are not in the file:\n{wanted}"
THERE = "\n\nThe new lines are in the file already, at line {place}: is this edit still needed?"
COPY = "\n\nCopy whole lines from the file exactly, and leave none out in between."
NEAREST = "\n\nNearest to them are lines {first} to {last} of the file ({percent} % alike):\n{lines}"

QUOTED = 12
"""Lines of a search that are repeated to the model; it has the rest."""
NAMED = 10
"""Places of an ambiguous search that are named."""

ALIKE = 0.5
"""Less than this and the lines would only mislead."""
COMPARED = 200
"""Words that are compared one by one: that takes time as their square."""
NEAREST_QUOTED = 30
AROUND = 2
CANDIDATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why lines cannot be replaced."""

    fault: Fault
    text: str
    """For the model; does not name the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A run of lines in a file that matches what was wanted."""

    start: int
    """Index of its first line."""
    written: str = ""
    """Indentation that the wanted lines have there in place of the file's."""
    indented: str = ""
    """Indentation that the file has in place of it."""

    def fitted(self, lines: Sequence[str]) -> list[str] | None:
        """Lines that go with the wanted ones, indented as the file is; None when they have less indentation than that
        takes away."""
        if any(line.strip() and not line.startswith(self.written) for line in lines):
            return None
        return [self.indented + line.removeprefix(self.written) if line.strip() else line for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    start: int
    stop: int
    lines: list[str]


def replaced(content: str, before: str, after: str) -> str | Miss:
    """`content` with the lines `before` replaced by the lines `after`; LF, a final newline stays or stays missing.

    Tried in this order, the next only if nothing was found: what `found` tolerates; the same without blank lines at
    the ends of `before`; pieces between lines of `...`, if `after` has as many of those lines. Nothing but a single
    match counts. An empty `before` is for an empty file.
    """
    lines, wanted, given = split(content), split(before), split(after)
    changes = _changes(lines, wanted, given)
    if isinstance(changes, Miss):
        return changes
    if changes is None:
        return _missing(lines, wanted, given)
    for change in reversed(changes):
        lines[change.start : change.stop] = change.lines
    return joined(lines, like=content)


def fits(content: str, before: str, after: str) -> bool:
    """Whether `replaced` would replace something."""
    return isinstance(_changes(split(content), split(before), split(after)), list)


def found(lines: Sequence[str], wanted: Sequence[str]) -> tuple[Match, ...]:
    """All places where the lines are, by the first of these rules that finds any: exactly; but for
    whitespace at the ends of lines; but for one constant difference in indentation, which every place then has. Blank
    lines alone are looked for exactly, and no lines at all are nowhere.
    """
    exact = _runs(lines, wanted)
    if exact or not any(line.strip() for line in wanted):
        return tuple(Match(start=at) for at in exact)
    ends = _runs([line.rstrip() for line in lines], [line.rstrip() for line in wanted])
    if ends:
        return tuple(Match(start=at) for at in ends)
    alike = _runs([line.strip() for line in lines], [line.strip() for line in wanted])
    shifted = (_shifted(lines[at : at + len(wanted)], wanted, at) for at in alike)
    return tuple(place for place in shifted if place is not None)


def _missing(lines: Sequence[str], wanted: Sequence[str], given: Sequence[str]) -> Miss:
    """What to say of lines that are not in the file: what is nearest to them, and whether the edit is there already."""
    text = MISSING.format(wanted=quote_lines(wanted, QUOTED)) + describe_nearest(lines, wanted)
    there = found(lines, given) if any(line.strip() for line in given) else ()
    if there:
        text += THERE.format(place=there[0].start + 1)
    return Miss(fault=Fault.NO_MATCH, text=text + COPY)


def _several(places: Sequence[Match]) -> Miss:
    """What to say of lines that are in the file more than once."""
    named = [str(place.start + 1) for place in places[:NAMED]]
    if len(places) > NAMED:
        named.append("…")
    return Miss(fault=Fault.AMBIGUOUS, text=SEVERAL.format(count=len(places), places=", ".join(named)))


def describe_nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Quote the best place by words in common, with its line numbers and a share; empty where nothing is alike."""
    size = min(len(wanted), len(lines))
    sought = _words(wanted)[:COMPARED]
    best = max(((_alike(lines[at : at + size], sought), -at) for at in _candidates(lines, wanted, size)), default=None)
    if best is None or best[0] < ALIKE:
        return ""
    first = max(0, -best[1] - AROUND)
    last = min(-best[1] + size + AROUND, first + NEAREST_QUOTED, len(lines))
    quoted = quote_lines(lines[first:last], NEAREST_QUOTED)
    return NEAREST.format(first=first + 1, last=last, percent=int(100 * best[0]), lines=quoted)


def quote_lines(lines: Sequence[str], most: int) -> str:
    """Return lines for a model to read, no more than it needs to know which are meant."""
    few = [shorten(line) for line in lines[:most]]
    return "\n".join([*few, "[…]"] if len(lines) > most else few)


def split(text: str) -> list[str]:
    """A text's lines, without their ends; an empty text has none."""
    return (text if text.endswith("\n") or not text else text + "\n").split("\n")[:-1]


def _changes(lines: list[str], wanted: list[str], given: list[str]) -> list[_Change] | Miss | None:
    """None when the wanted lines are nowhere."""
    if not lines and not any(line.strip() for line in wanted):
        return [_Change(start=0, stop=0, lines=given)]
    if not wanted:
        return Miss(fault=Fault.MALFORMED, text=NOWHERE)
    if wanted == given:
        return Miss(fault=Fault.MALFORMED, text=UNCHANGED) if found(lines, wanted) else None
    for step in (_one_run, _without_blank_ends, _with_gaps):
        changes = step(lines, wanted, given)
        if changes is not None:
            return changes
    return None


def _runs(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where all the wanted lines stand in a row. Looks only around the one that is rarest in the file."""
    if not wanted:
        return []
    counts = Counter(lines)
    rarest = min(range(len(wanted)), key=lambda index: counts[wanted[index]])
    if not counts[wanted[rarest]]:
        return []
    firsts = (at - rarest for at, line in enumerate(lines) if line == wanted[rarest])
    run = list(wanted)
    return [at for at in firsts if at >= 0 and lines[at] == run[0] and list(lines[at : at + len(run)]) == run]


def _shifted(there: Sequence[str], wanted: Sequence[str], at: int) -> Match | None:
    """The place of lines that are alike but for their indentation, if that differs by the same in all of them."""
    written, indented = _indentation(wanted), _indentation(there)
    if _outdented(wanted, written) != _outdented(there, indented):
        return None
    while written and indented and written[-1] == indented[-1]:
        written, indented = written[:-1], indented[:-1]
    return Match(start=at, written=written, indented=indented)


def _indentation(lines: Sequence[str]) -> str:
    """What all lines that are not blank begin with."""
    leads = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    first, last = min(leads), max(leads)
    same = next((index for index, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    return first if same is None else first[:same]


def _outdented(lines: Sequence[str], indentation: str) -> list[str]:
    return [line.removeprefix(indentation).rstrip() if line.strip() else "" for line in lines]


def _one_run(lines: list[str], wanted: list[str], given: list[str]) -> list[_Change] | Miss | None:
    places = found(lines, wanted)
    if len(places) > 1:
        return _several(places)
    new = places[0].fitted(given) if places else None
    if new is None:
        return None
    start, stop = places[0].start, places[0].start + len(wanted)
    return [_Change(start=start, stop=stop, lines=_kept(lines[start:stop], wanted, given, new))]


def _kept(there: list[str], wanted: list[str], given: list[str], new: list[str]) -> list[str]:
    """The new lines; those that stay are as the file has them, whatever whitespace was forgiven."""
    if there == wanted:
        return new
    for old, at, size in SequenceMatcher(None, wanted, given).get_matching_blocks():
        new[at : at + size] = there[old : old + size]
    return new


def _without_blank_ends(lines: list[str], wanted: list[str], given: list[str]) -> list[_Change] | Miss | None:
    """As `_one_run`; what is left must say something, for a lone bracket is found in many a wrong place."""
    head, tail = _blank_ends(wanted)
    core = wanted[head : len(wanted) - tail]
    if not head + tail or not any(char.isalnum() for line in core for char in line):
        return None
    blank_head, blank_tail = _blank_ends(given)
    return _one_run(lines, core, given[min(head, blank_head) : len(given) - min(tail, blank_tail)])


def _blank_ends(lines: list[str]) -> tuple[int, int]:
    """How many blank lines there are at the beginning and at the end; all at the beginning if there are no others."""
    full = [index for index, line in enumerate(lines) if line.strip()]
    return (full[0], len(lines) - 1 - full[-1]) if full else (len(lines), 0)


def _with_gaps(lines: list[str], wanted: list[str], given: list[str]) -> list[_Change] | Miss | None:
    """Each piece between two lines of `...` is there once, below the one before it."""
    old, new = _pieces(wanted), _pieces(given)
    if len(old) == 1 or len(old) != len(new):
        return None
    changes: list[_Change] = []
    for before, after in zip(old, new, strict=True):
        if before == after == []:
            continue
        change = _one_run(lines, before, after)
        if change is None or isinstance(change, Miss):
            return change
        if changes and change[0].start < changes[-1].stop:
            return None
        changes += change
    return changes or None


def _pieces(lines: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == "...":
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _candidates(lines: Sequence[str], wanted: Sequence[str], size: int) -> list[int]:
    """Where the windows begin that share most with what is wanted; rare words of the file weigh most."""
    sought = set(_words(wanted))
    shared = [[word for word in _words([line]) if word in sought] for line in lines]
    counts = Counter(word for words in shared for word in words)
    sums = [0.0, *accumulate(sum(1 / counts[word] for word in words) for words in shared)]
    scores = [sums[at + size] - sums[at] for at in range(len(lines) - size + 1)]
    ranked = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    return [at for at in ranked[:CANDIDATES] if scores[at]]


def _alike(lines: Sequence[str], sought: list[str]) -> float:
    return SequenceMatcher(None, _words(lines)[:COMPARED], sought, autojunk=False).ratio()


def _words(lines: Sequence[str]) -> list[str]:
    return re.findall(r"\w+", "\n".join(lines))
