"""Everything about one instance, as a piece of HTML: its tests, its patch, its attempts and its log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from retrial.reports.page import transcripts
from retrial.reports.page.text import TextAllowance, preformatted, render_diff, render_reply, visible
from retrial.reports.page.transcripts import Piece, Section
from retrial.types import Status

FOLDED = 1500
"""Longer messages than this are closed at first."""
EVERYTHING = 16_000_000
"""Characters that a whole page may hold of texts; compressed, about a quarter of it in bytes."""
LONGEST = 40_000
LEAST = 2_000
TESTS = 300
"""Of one status; results.json has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is known of an instance, as it lies on disk."""

    row: Mapping[str, Any]
    """Of results.json."""
    patch: str
    chat: str
    log: str

    def key(self, *more: object) -> str:
        """Other for every other content: what was drawn of it before may be used again."""
        # Whether a verdict came from the cache is not shown.
        row = sorted((name, str(value)) for name, value in self.row.items() if name != "cached")
        content = "\0".join([repr(row), self.patch, self.chat, self.log, *map(str, more)])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    heading: str
    kind: str
    pieces: list[Markup]
    folded: bool


def room(instances: int) -> int:
    """Characters for each of an instance's texts, when there are so many instances."""
    return max(LEAST, min(LONGEST, EVERYTHING // max(1, 2 * instances)))


def render(template: Template, material: Material, most: int) -> str:
    allowance = TextAllowance(most, 3 * most)
    row = material.row
    return template.render(
        row=row,
        tests=_tests(row["tests"]),
        patch=render_diff(allowance.cut(material.patch)) if material.patch else None,
        attempts=[
            (_heading(attempt.heading, row), [_message(entry, allowance) for entry in attempt.entries if entry.pieces])
            for attempt in transcripts.read(material.chat)
            if attempt.heading
        ],
        log=preformatted(allowance.cut(material.log)) if material.log else None,
    )


def _heading(text: str, row: Mapping[str, Any]) -> str:
    """Of an attempt, with what came of it."""
    number = re.match(r"Attempt (\d+)", text)
    made = next((each for each in row["attempts"] if number and each["try"] == int(number[1])), None)
    if made is None:
        return text
    found = ["chosen"] if made["try"] == row["try"] else []
    found += ["plausible" if made["plausible"] else "not plausible"]
    return f"{text}: {', '.join(found)}"


def _tests(tests: Mapping[str, str]) -> list[tuple[str, list[str], int]]:
    """Status, names, and how many more there are; what did not pass comes first."""
    order = [Status.ERROR, Status.FAILED, Status.XFAILED, Status.SKIPPED, Status.PASSED]
    found = []
    for status in order:
        names = sorted(name for name, each in tests.items() if each == status)
        if names:
            found.append((str(status), names[:TESTS], len(names) - TESTS))
    return found


def _message(entry: Section, allowance: TextAllowance) -> ShownMessage:
    size = sum(len(piece.text) for piece in entry.pieces)
    return ShownMessage(
        heading=entry.heading,
        kind=entry.kind,
        pieces=[_piece(entry.kind, piece, allowance) for piece in entry.pieces],
        folded=size > FOLDED and entry.kind != "assistant",
    )


def _piece(kind: str, piece: Piece, allowance: TextAllowance) -> Markup:
    text = allowance.cut(piece.text)
    if not piece.fenced:
        return Markup("<p>{}</p>").format(_line(text))
    if piece.language == "diff":
        return render_diff(text)
    if kind == "assistant" and piece.language == "text":
        return render_reply(text)
    return preformatted(text)


def _line(text: str) -> str:
    """Without the marks of its Markdown."""
    return visible(text.strip("*").replace(":**", ":"))
