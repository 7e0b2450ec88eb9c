"""Lines of journals as any version may have written them."""

from __future__ import annotations

from typing import Any

from retrial.chat import Message, Request, Sampling
from retrial.store import journal
from retrial.store.events import Event
from retrial.store.journal import Journal
from retrial.store.json_io import to_jsonl

_NEEDED: dict[str, dict[str, Any]] = {
    "attempt_started": {"model": "m", "sampling": Sampling(temperature=0.0, seed=0, max_tokens=9, seconds=60)},
    "request": {"request": Request(messages=(Message(role="user", content="?"),))},
    "reply": {},
}


def line(event: str, **fields: object) -> bytes:
    """With a checksum; what a reader needs and no test is about is added."""
    return journal.sealed(to_jsonl({"event": event, **_NEEDED.get(event, {}), **fields}))


def append(to: Journal, event: str, **fields: object) -> None:
    to.write(line(event, **fields))


def events(*lines: tuple[str, dict[str, object]]) -> list[Event]:
    """As they are read back."""
    return list(journal.read(b"".join(line(event, **fields) for event, fields in lines)))
