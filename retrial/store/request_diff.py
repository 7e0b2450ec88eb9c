"""One question against another: where they part first, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile, zip_longest
from typing import Any

from retrial.chat import Request
from retrial.store.json_io import to_jsonl

PARTS = ("messages", "tools", "temperature", "seed", "max_tokens")
"""Of a request, what makes its question."""
_SHOWN = 60
_BEFORE = 20
"""Of a long line: so many characters, beginning so many before the first that differs."""


def question(request: Request) -> dict[str, Any]:
    """As a journal has it."""
    found: dict[str, Any] = json.loads(to_jsonl({name: getattr(request, name) for name in PARTS}))
    return found


def first_difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs first and how it was and is; empty when the questions are the same."""
    for where, old, new in _lines(then, now):
        if old != new:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(old or "", new or "", strict=False))
            start = max(0, len(list(same)) - _BEFORE)
            return f"{where}: {_shown(old, start)} then, {_shown(new, start)} now"
    return ""


def _lines(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str | None, str | None]]:
    """(where, line then, line now), in the order in which people look for differences."""
    for number, (old, new) in enumerate(zip_longest(then["messages"], now["messages"]), start=1):
        yield from _message_lines(f"message {number}", old, new)
    for name in PARTS[1:]:
        yield from _text_lines(name, _text(then[name]), _text(now[name]))


def _message_lines(
    where: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> Iterator[tuple[str, str | None, str | None]]:
    if old is None or new is None:
        yield where, _summary(old), _summary(new)
        return
    yield f"{where}, role", old["role"], new["role"]
    yield from _text_lines(f"{where} ({new['role']})", old["content"], new["content"])
    # A journal of before there were calls.
    for name, none in (("calls", []), ("call_id", "")):
        yield from _text_lines(f"{where} ({new['role']}), {name}", _text(old.get(name, none)), _text(new[name]))


def _text_lines(where: str, old: str, new: str) -> Iterator[tuple[str, str | None, str | None]]:
    several = "\n" in old or "\n" in new
    for number, (before, after) in enumerate(zip_longest(old.split("\n"), new.split("\n")), start=1):
        yield f"{where}, line {number}" if several else where, before, after


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1)


def _summary(message: Mapping[str, Any] | None) -> str | None:
    return None if message is None else f"{message['role']}: {message['content']}".partition("\n")[0]


def _shown(line: str | None, start: int) -> str:
    if line is None:
        return "nothing"
    part = line[start : start + _SHOWN]
    return f"'{'…' if start else ''}{part}{'…' if start + _SHOWN < len(line) else ''}'"
