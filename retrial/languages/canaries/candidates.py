"""Candidates for canaries: copies of real tests with one literal changed. Which of them fail, the reference says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from retrial.languages.canaries.literals import changed
from retrial.types import Canary, Naming

MOST = 20
"""Candidates for one task: all of them are in its reference's first run."""

Span = tuple[int, int]
"""First byte, and the one behind the last."""
NAME = "RETRIAL_CANARY"
"""Stands for its name in a canary's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test as it stands in its file; it can be put before any other of its scope."""

    whole: Span
    """From the beginning of its first line (with decorators and attributes) to the end of its last."""
    name: Span
    """What is replaced by the canary's name."""
    literals: tuple[Span, ...]
    """The best first: of what is expected, then of what is put in."""
    others: Mapping[Span, str] = field(default_factory=dict)
    """Those of `literals` that are none, such as constants, and what is put in their place."""
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

    def places(self, copied: Test) -> tuple[int, ...]:
        """Where a copy of this test may be put."""
        places = (test.whole[0] for test in self.tests if test.scope == copied.scope)
        return tuple(place for place in places if place >= copied.whole[0] or not copied.bound)


def candidates(file: TestFile, weak: str = "") -> tuple[Canary, ...]:
    """The best literal of every test before the second best of any; last `weak`, a test that fails whatever happens, to
    stand beside the first."""
    rounds = zip_longest(*(_copies(file, test) for test in file.tests))
    strong = islice((canary for each in rounds for canary in each if canary is not None), MOST)
    last = [_weak(file, weak)] if weak and file.tests else []
    return (*strong, *last)


def _copies(file: TestFile, test: Test) -> Iterator[Canary]:
    for start, end in test.literals:
        literal = _text(file, (start, end))
        other = test.others.get((start, end)) or changed(literal)
        if other is not None:
            text = _replaced(file, test, (start, end), other)
            yield _canary(file, test, text, strong=True, of=f"{_text(file, test.name)}: {literal} is {other}")


def _replaced(file: TestFile, test: Test, literal: Span, other: str) -> str:
    changes = sorted([(test.name, NAME), (literal, other)])
    parts, position = [], test.whole[0]
    for (start, end), new in changes:
        parts += [_text(file, (position, start)), new]
        position = end
    return "".join([*parts, _text(file, (position, test.whole[1])), "\n\n"])


def _weak(file: TestFile, text: str) -> Canary:
    return _canary(file, file.tests[0], text, strong=False, of="a failure through the same assertion")


def _canary(file: TestFile, test: Test, text: str, *, strong: bool, of: str) -> Canary:
    names = words(_text(file, each.name) for each in file.tests)
    return Canary(
        path=file.path,
        text=text,
        places=file.places(test),
        strong=strong,
        unsure=strong and test.unsure,
        naming=file.naming,
        prefix=file.prefix,
        words=names,
        test=_text(file, test.name),
        of=of,
    )


def _text(file: TestFile, span: Span) -> str:
    return file.source[slice(*span)].decode("utf-8", "surrogateescape")


def words(names: Iterable[str]) -> tuple[str, ...]:
    """The words that names of tests are made of, however they are written."""
    found = (word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))
    return tuple(sorted({word for word in found if len(word) > 2 and word != "test"}))
