"""Canaries: tests that must fail, planted among the real ones. Whatever forces success makes them pass as well."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from retrial.checks import Canary, Check, Naming
from retrial.languages.canaries.candidates import NAME
from retrial.types import Execution

WORDS = ("empty", "single", "several", "large", "small", "mixed", "first", "last", "input", "value")
"""For names, where the real tests have too few."""
LENGTH = (2, 5)
"""Words in a name, at the least and at the most."""
PATIENCE = 100
TRIFLE = 0.2
"""Of the time limit."""
COMPUTING = 0.5
"""Of a core: a job that waits for something that does not come uses less."""
LINE = 2000
"""Characters of a line that are looked at."""
DRAWN = 3
"""Planted in one run, of all that are proved: code that is right where they look, and forges elsewhere, cannot know
where that is."""
LEADING = 20
"""Names to choose the first in the alphabet from."""

_random = random.SystemRandom()


def drawn(canaries: Sequence[Canary]) -> tuple[Canary, ...]:
    """Some of them, in any order."""
    return tuple(_random.sample(canaries, min(len(canaries), DRAWN)))


def plant(check: Check, chosen: Iterable[Canary]) -> Check:
    """The check with these canaries in its files, each under a new name in a new place.

    The first comes before the test that it is a copy of, as far as names and places can make it: a value that is equal
    to what it is first compared with must not always meet the right one first.
    """
    inserted: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    names: list[str] = []
    ids: list[str] = []
    for canary in chosen:
        leading = not names
        names.append(min(_name(canary, check.files, names) for _ in range(LEADING if leading else 1)))
        ids.append(canary.id.replace(NAME, names[-1]))
        text = canary.text.replace(NAME, names[-1]).encode("utf-8", "surrogateescape")
        inserted[canary.path].append((min(canary.places) if leading else _random.choice(canary.places), text))
    files = {path: _with(check.files[path], texts) for path, texts in inserted.items()}
    return replace(check, files={**check.files, **files}, planted=tuple(names), planted_ids=tuple(ids))


def disturbed(check: Check, execution: Execution) -> bool:
    """Return whether the run timed out though its task's own tests might have ended in time without canaries.

    Only where the output says that a canary came to its end, so that it is not the first test that hangs; and where
    something was printed late enough for canaries to have taken more than a trifle of the time. Where the runner
    reports at the end, nothing is known but whether the job was computing.
    """
    if not execution.timed_out or check.own_ended or not check.planted:
        return False
    if check.reports_at_end:
        return execution.cpu_seconds is None or execution.cpu_seconds >= COMPUTING * execution.seconds
    late = execution.heard >= TRIFLE * check.seconds
    return late and any(name in line for line in _failures(execution) for name in check.planted)


def _failures(execution: Execution) -> list[str]:
    """Lines that tell of a failure; of some runners, only when all tests have ended."""
    lines = (line[:LINE] for line in execution.stdout.splitlines())
    return [line for line in lines if "fail" in line.lower()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCanary:
    """As it is listed in results."""

    path: str
    of: str
    strong: bool


def shown(canaries: Iterable[Canary]) -> tuple[ShownCanary, ...]:
    return tuple(ShownCanary(path=each.path, of=each.of, strong=each.strong) for each in canaries)


def _with(content: bytes, texts: Iterable[tuple[int, bytes]]) -> bytes:
    for place, text in sorted(texts, reverse=True):
        content = content[:place] + text + content[place:]
    return content


def _name(canary: Canary, files: Mapping[str, bytes], taken: Iterable[str]) -> str:
    """One that looks like those around it and is in no file, nor part of another or the other way round."""
    known = canary.words if len(canary.words) > LENGTH[1] else (*canary.words, *WORDS)
    everything = b"\n".join(files.values()).lower()
    for patience in range(PATIENCE):
        chosen = _random.sample(known, min(len(known), _random.randint(*LENGTH)))
        name = _written(canary, [*chosen, *([str(_random.randint(2, 99))] if patience > PATIENCE // 2 else [])])
        if name.lower().encode() not in everything and not any(name in other or other in name for other in taken):
            return name
    raise AssertionError(f"no name is left for a canary in {canary.path}")


def _written(canary: Canary, chosen: list[str]) -> str:
    match canary.naming:
        case Naming.SNAKE:
            return canary.prefix + "_".join(chosen)
        case Naming.WORDS:
            return canary.prefix + " ".join(chosen)
        case Naming.PASCAL:
            return canary.prefix + "".join(word.capitalize() for word in chosen)
        case Naming.CAMEL:
            rest = "".join(word.capitalize() for word in chosen)
            return canary.prefix + rest if canary.prefix else rest[0].lower() + rest[1:]
