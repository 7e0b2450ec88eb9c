"""Everything about one instance, as a piece of HTML: its tests, its patch, its attempts and its log."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jinja2 import Template
from markupsafe import Markup, escape

from retrial.errors import UsageError
from retrial.reports.records import InstanceRow
from retrial.store import transcript
from retrial.store.runs import Run
from retrial.store.transcript import TEXT, AttemptTranscript, Part
from retrial.system.secrets import MASKER
from retrial.types import Status

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from pygments.lexer import Lexer

FOLDED = 1500
"""Longer messages than this are closed at first."""
EVERYTHING = 16_000_000
"""Characters that a whole page may hold of texts; compressed, about a quarter of it in bytes."""
LONGEST = 40_000
LEAST = 2_000
TESTS = 300
"""Of one status; results.json has them all."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
"""Where Unicode shows control characters: ␛ for what begins a terminal's commands."""

LEADING = ("link", "image", "autolink", "html_inline", "html_block", "reference")
"""Rules that are off: links and pictures stay text. A page must not load anything."""


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


def room(instances: int) -> int:
    """Characters for each of an instance's texts, when there are so many instances."""
    return max(LEAST, min(LONGEST, EVERYTHING // max(1, 2 * instances)))


def render(template: Template, material: Material, attempts: Sequence[ShownAttempt], most: int) -> str:
    allowance = TextAllowance(most, 3 * most)
    row = material.row
    return template.render(
        row=row,
        tests=_tests(row.tests),
        patch=material.patch,
        attempts=[(_heading(heading, row), sections) for heading, sections in attempts],
        log=material.log,
        cut=allowance.cut,
        draw=_piece,
        preformatted=preformatted,
        render_diff=render_diff,
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


def _piece(kind: str, language: str, text: str) -> Markup:
    if not language:
        # Without the marks of its Markdown.
        return Markup("<p>{}</p>").format(visible(text.strip("*").replace(":**", ":")))
    if language == "diff":
        return render_diff(text)
    if kind == "assistant" and language == TEXT:
        return render_reply(text)
    return preformatted(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    """`user`, `assistant`, `check: tests_failed`, `patch`; empty before the first."""
    pieces: list[Part] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return re.split("[:, ]", self.heading, maxsplit=1)[0]

    @property
    def folded(self) -> bool:
        return self.kind != "assistant" and sum(len(piece.text) for piece in self.pieces) > FOLDED


ShownAttempt = tuple[str, list[Section]]
"""Its heading, and what was said and done."""


def chat_source(run: Run, instance_id: str) -> bytes:
    """What a transcript is made from, masked: where that is the same, so is the transcript."""
    return MASKER.redact_bytes(run.journal(instance_id).content() or run.chat(instance_id).encode("utf-8", "replace"))


def read_attempts(run: Run, instance_id: str) -> list[ShownAttempt]:
    """Masked once more: not every key was known when it was written."""
    found = list[AttemptTranscript]()
    # What another version of ours wrote in another form is there as Markdown.
    with suppress(UsageError):
        found = transcript.attempts(run.journal(instance_id).events())
    attempts = found or transcript.from_markdown(run.chat(instance_id))
    return [(MASKER.redact(each.heading), _sections(each)) for each in attempts]


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


def visible(text: str) -> str:
    """With signs for what nobody would see, or what would turn a line around."""
    return _UNSEEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return f"⟨U+{code:04X}⟩"


class TextAllowance:
    """How much of one instance's texts the page may hold: of two thousand, all of it would be too much."""

    def __init__(self, each: int, total: int) -> None:
        self._each = each
        self._left = total

    def cut(self, text: str) -> str:
        """Both ends of it, where it is too long, and how much is missing."""
        most = max(200, min(self._each, self._left))
        self._left -= min(len(text), most)
        if len(text) <= most:
            return text
        half = most // 2
        return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def preformatted(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(escape(visible(text)))


def render_reply(text: str) -> Markup:
    """Return what a model wrote as HTML: its Markdown is shown, and none of it can run, load or lead anywhere."""
    return Markup(_reader().render(visible(text)))


@functools.lru_cache(maxsize=16)
def render_diff(text: str) -> Markup:
    """Colour what a patch adds and removes; a chosen patch is shown twice, also where it was made."""
    from pygments.token import STANDARD_TYPES

    # Pygments' own way of writing HTML takes three times as long: it also knows about line numbers and links. What is
    # escaped before it is looked at has the same first letters in its lines.
    marked = (
        f'<span class="{STANDARD_TYPES.get(kind, "")}">{part}</span>'
        for kind, part in _lexer().get_tokens(str(escape(visible(text))))
    )
    return Markup(f'<pre class="diff">{"".join(marked)}</pre>')


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).disable(list(LEADING))
    # A model's headings are no chapters of this page.
    for level in ("open", "close"):
        reader.add_render_rule(f"heading_{level}", _no_heading)
    return reader


def _no_heading(_self: object, tokens: object, place: int, *_rest: object) -> str:
    opening = tokens[place].nesting == 1  # type: ignore[index]
    return '<p class="heading">' if opening else "</p>\n"


@functools.cache
def _lexer() -> Lexer:
    from pygments.lexers import DiffLexer

    lexer: Lexer = DiffLexer(stripnl=False)
    return lexer
