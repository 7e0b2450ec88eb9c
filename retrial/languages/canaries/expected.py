"""What tests expect, the surest first: values that every solution must have, since it passes the test they are from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from retrial.languages.canaries.candidates import Span, Test


class Sureness(IntEnum):
    """How sure it is that a test fails when it expects something else here."""

    VALUE = 0
    """What is compared with, as it stands."""
    VARIABLE = 1
    """The same, by a variable's name."""
    CONSTANT = 2
    """Of an enumeration, or a truth that is asserted."""
    MESSAGE = 3
    ARGUMENT = 4
    """Of a function of the test file that asserts; it may be something that is put in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    span: Span
    sureness: Sureness
    other: str = ""
    """What to expect in its place, where it is no literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A test as it was found."""

    whole: Span
    name: Span
    expected: tuple[Expected, ...]
    scope: int
    unsteady: bool
    """It loops or waits."""

    @property
    def sureness(self) -> int:
        return min((each.sureness for each in self.expected), default=len(Sureness))

    def without(self, sureness: Sureness) -> Draft:
        return replace(self, expected=tuple(each for each in self.expected if each.sureness is not sureness))


def ranked(drafts: Iterable[Draft]) -> tuple[Test, ...]:
    """The surest first; of the same kind those of the largest scope, where a copy has most places to be in. Only where
    there is nothing else is that changed which may be something that is put in, for honest solutions may differ then,
    and are tests copied that loop or wait."""
    found = list(drafts)
    if any(each.sureness < Sureness.ARGUMENT for draft in found for each in draft.expected):
        found = [draft.without(Sureness.ARGUMENT) for draft in found]
    if any(draft.expected and not draft.unsteady for draft in found):
        found = [replace(draft, expected=()) if draft.unsteady else draft for draft in found]
    sizes = Counter(draft.scope for draft in found)
    found.sort(key=lambda draft: (draft.sureness, -sizes[draft.scope], draft.whole))
    return tuple(_test(draft) for draft in found)


def _test(draft: Draft) -> Test:
    expected = sorted(draft.expected, key=lambda each: each.sureness)
    return Test(
        whole=draft.whole,
        name=draft.name,
        literals=tuple(dict.fromkeys(each.span for each in expected)),
        others={each.span: each.other for each in expected if each.other},
        scope=draft.scope,
    )


def line(source: bytes, start: int) -> int:
    """Where the line begins, if there is nothing but blanks before."""
    begin = source.rfind(b"\n", 0, start) + 1
    return start if source[begin:start].strip() else begin
