"""Everything about one instance, as a piece of HTML: its tests, its patch, its attempts and its log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from jinja2 import Template
from markupsafe import Markup

from retrial.reports.page.text import TextAllowance, preformatted, render_diff, render_reply, visible
from retrial.reports.records import InstanceRow
from retrial.store import transcript
from retrial.store.runs import Run
from retrial.store.transcript import TEXT, AttemptTranscript, Part
from retrial.system.secrets import MASKER
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

    row: InstanceRow
    patch: str
    transcript: bytes
    """What its transcript is made from."""
    log: str

    def key(self, *more: object) -> str:
        """Other for every other content: what was drawn of it before may be used again."""
        # Whether a verdict came from the cache is not shown.
        content = "\0".join([repr(replace(self.row, cached=False)), self.patch, self.log, *map(str, more)])
        found = hashlib.sha256(content.encode("utf-8", "surrogatepass"))
        found.update(self.transcript)
        return found.hexdigest()[:24]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    heading: str
    kind: str
    pieces: list[Markup]
    folded: bool


def room(instances: int) -> int:
    """Characters for each of an instance's texts, when there are so many instances."""
    return max(LEAST, min(LONGEST, EVERYTHING // max(1, 2 * instances)))


def render(template: Template, material: Material, attempts: Sequence[ShownAttempt], most: int) -> str:
    allowance = TextAllowance(most, 3 * most)
    row = material.row
    return template.render(
        row=row,
        tests=_tests(row.tests),
        patch=render_diff(allowance.cut(material.patch)) if material.patch else None,
        attempts=[
            (_heading(attempt.heading, row), [_message(section, allowance) for section in attempt.sections])
            for attempt in attempts
        ],
        log=preformatted(allowance.cut(material.log)) if material.log else None,
    )


def _heading(text: str, row: InstanceRow) -> str:
    """Of an attempt, with what came of it."""
    number = re.match(r"Attempt (\d+)", text)
    made = next((each for each in row.attempts if number and each.number == int(number[1])), None)
    if made is None:
        return text
    found = ["chosen"] if made.number == row.number else []
    found += ["plausible" if made.plausible else "not plausible"]
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


def _piece(kind: str, piece: Part, allowance: TextAllowance) -> Markup:
    text = allowance.cut(piece.text)
    if not piece.language:
        return Markup("<p>{}</p>").format(_line(text))
    if piece.language == "diff":
        return render_diff(text)
    if kind == "assistant" and piece.language == TEXT:
        return render_reply(text)
    return preformatted(text)


def _line(text: str) -> str:
    """Without the marks of its Markdown."""
    return visible(text.strip("*").replace(":**", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    """`user`, `assistant`, `check: tests_failed`, `patch`; empty before the first."""
    pieces: list[Part] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return re.split("[:, ]", self.heading, maxsplit=1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttempt:
    heading: str
    sections: list[Section]


def chat_source(run: Run, instance_id: str) -> bytes:
    """What a transcript is made from, masked: where that is the same, so is the transcript."""
    return MASKER.redact_bytes(run.journal(instance_id).content() or run.chat(instance_id).encode("utf-8", "replace"))


def read_attempts(run: Run, instance_id: str) -> list[ShownAttempt]:
    """Masked once more: not every key was known when it was written."""
    found = list[AttemptTranscript]()
    # What another version of ours wrote in another form is there as Markdown.
    with suppress(ValueError):
        found = transcript.attempts(run.journal(instance_id).events())
    attempts = found or transcript.from_markdown(run.chat(instance_id))
    return [ShownAttempt(heading=MASKER.redact(each.heading), sections=_sections(each)) for each in attempts]


def _sections(attempt: AttemptTranscript) -> list[Section]:
    found = [Section(heading="")]
    for part in attempt.parts:
        text = MASKER.redact(part.text)
        if part.heading:
            found.append(Section(heading=text))
        else:
            found[-1].pieces.extend(_pieces(text, part.language))
    return [each for each in found if each.pieces]


def _pieces(text: str, language: str) -> Iterator[Part]:
    """Our own words line by line."""
    if language:
        yield Part(text=text.removesuffix("\n"), language=language)
    else:
        yield from (Part(text=line) for line in text.split("\n") if line)
