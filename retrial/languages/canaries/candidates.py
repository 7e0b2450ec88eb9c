"""Candidates for canaries: copies of real tests with one literal changed. Which of them fail, the reference says."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from retrial.checks import Canary, Naming
from retrial.languages.canaries.syntax import Span, spliced

MOST = 20
"""Candidates for one task: all of them are in its reference's first run."""

NAME = "RETRIAL_CANARY"
"""Stands for its name in a canary's text."""
WORDS = {"true": "false", "false": "true", "True": "False", "False": "True"}
NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<digits>\d[\d_']*)(?P<rest>.*)", re.DOTALL)
QUOTED = re.compile(
    r"""(?P<open>[A-Za-z]{0,2}\#*(?P<quote>\"{3}|'{3}|["'`]))(?P<inner>.*)(?P<close>(?P=quote)\#*)""", re.DOTALL
)
BASED = re.compile(r"(?P<base>[+-]?0[xXbBoO])(?P<digits>[\da-fA-F_']*[\da-fA-F])(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A part of a test that the test fails without."""

    span: Span
    sureness: int
    """How sure that is; the least is the surest."""
    other: str = ""
    """What to put in its place, where it is no literal."""
    of: str = ""
    """What is changed, for people, where it is not all of what stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test as it stands in its file; it can be put before any other of its scope."""

    whole: Span
    """From the beginning of its first line (with decorators, attributes and the like) to the end of its last."""
    name: Span
    """What is replaced by the canary's name."""
    expected: tuple[Expected, ...]
    """The best first: what is expected, then what is put in."""
    unsure: bool = False
    """Its literals are all of what is put in."""
    scope: int = 0
    """The same for tests of one class or block, where tests lean on what is around them."""
    bound: bool = False
    """It is defined with names that may be assigned above it, and cannot be put any higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFile:
    path: str
    source: bytes
    tests: Sequence[Test]
    naming: Naming
    prefix: str = ""
    """What names of tests begin with."""
    weak: str = ""
    """Of a test beside its first one that fails whatever the solution does; empty where none can be made."""

    def places(self, copied: Test) -> tuple[int, ...]:
        """Where a copy of this test may be put."""
        places = (test.whole[0] for test in self.tests if test.scope == copied.scope)
        return tuple(place for place in places if place >= copied.whole[0] or not copied.bound)

    def text(self, span: Span) -> str:
        return self.source[slice(*span)].decode("utf-8", "surrogateescape")


def candidates(files: Iterable[TestFile], most: int = MOST) -> tuple[Canary, ...]:
    """Return strong ones of each file in turn, the best literal of every test before the second best of any; last a
    weak one, of the first file that can have it."""
    found = [file for file in files if file.tests]
    strong = _in_turn(map(_strong, found))
    weak = (
        _canary(file, file.tests[0], file.weak, strong=False, of="a failure through the same assertion")
        for file in found
        if file.weak
    )
    return (*islice(strong, most), *islice(weak, 1))


def surest(expected: Iterable[Expected]) -> tuple[Expected, ...]:
    """The surest first, and of those at the same place only that."""
    ranked: dict[Span, Expected] = {}
    for each in sorted(expected, key=lambda each: each.sureness):
        ranked.setdefault(each.span, each)
    return tuple(ranked.values())


def _in_turn(of_each: Iterable[Iterator[Canary]]) -> Iterator[Canary]:
    """Yield the first of each, then the second of each, and so on. None is made before it is asked for."""
    waiting = deque(of_each)
    while waiting:
        canary = next(waiting[0], None)
        if canary is None:
            waiting.popleft()
        else:
            yield canary
            waiting.rotate(-1)


def _strong(file: TestFile) -> Iterator[Canary]:
    return _in_turn(_copies(file, test) for test in file.tests)


def _copies(file: TestFile, test: Test) -> Iterator[Canary]:
    for each in test.expected:
        literal = file.text(each.span)
        other = each.other or changed(literal)
        if other is not None:
            changes = (test.name, NAME.encode()), (each.span, other.encode("utf-8", "surrogateescape"))
            text = spliced(file.source, test.whole, changes).decode("utf-8", "surrogateescape") + "\n\n"
            of = f"{file.text(test.name)}: {each.of or f'{literal} is {other}'}"
            yield _canary(file, test, text, strong=True, of=of)


def _canary(file: TestFile, test: Test, text: str, *, strong: bool, of: str) -> Canary:
    return Canary(
        path=file.path,
        text=text,
        places=file.places(test),
        strong=strong,
        unsure=strong and test.unsure,
        naming=file.naming,
        prefix=file.prefix,
        words=words(file.text(each.name) for each in file.tests),
        test=file.text(test.name),
        of=of,
    )


def words(names: Iterable[str]) -> tuple[str, ...]:
    """The words that names of tests are made of, however they are written."""
    found = (word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))
    return tuple(sorted({word for word in found if len(word) > 2 and word != "test"}))


def changed(text: str) -> str | None:
    """None where it is no literal that we know how to change."""
    if text in WORDS:
        return WORDS[text]
    if quoted := QUOTED.fullmatch(text):
        return quoted["open"] + _other_text(quoted["inner"]) + quoted["close"]
    if based := BASED.fullmatch(text):
        return based["base"] + _other_based(based["digits"]) + based["rest"]
    if number := NUMBER.fullmatch(text):
        return number["sign"] + _other_number(number["digits"]) + number["rest"]
    return None


def _other_number(digits: str) -> str:
    """The last digit is another: never one more digit, which might not fit, and no leading zero."""
    last = int(digits[-1])
    return digits[:-1] + str(last - 1 if last > 1 else last + 1)


def _other_based(digits: str) -> str:
    """The last digit is its neighbour: of 0 and 1, of 6 and 7, of e and f, so that it is one in every base."""
    return digits[:-1] + "1032547698badcfeBADCFE"["0123456789abcdefABCDEF".index(digits[-1])]


def _other_text(inner: str) -> str:
    """Its last plain letter or digit is another one of its kind; a text without any gets one."""
    for place in reversed(range(len(inner))):
        # What may be part of an escape, or of something that is put in when it runs, is left alone.
        if inner[place].isascii() and inner[place].isalnum() and not re.search(r"[\\$%{&#][^\s]*$", inner[:place]):
            return inner[:place] + _other_letter(inner[place]) + inner[place + 1 :]
    return inner + "x" if len(inner) != 1 else "x"


def _other_letter(letter: str) -> str:
    if letter.isdigit():
        return _other_number(letter)
    last = letter in "zZ"
    return chr(ord(letter) + (-1 if last else 1))
