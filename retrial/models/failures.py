"""What can go wrong with one try at a provider, whether to try again, and what to tell people: one table."""

from __future__ import annotations

import email.utils
import math
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from retrial.chat import Overload
from retrial.models.endpoints import Endpoint
from retrial.system.console import printable
from retrial.system.secrets import HIDDEN, LIKE_A_KEY, MASKER, redact_by_name

_DICE = random.SystemRandom()  # never the seeded one: parallel runs must not retry in step
_LONGEST_DELAY = 30.0
ONE_DAY = 86_400.0
"""Seconds; a provider that asks to wait longer is taken to ask for this."""
_EXCERPT = 10_000
"""Characters of an error that are looked at for people."""
_HTML = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    happened: str
    todo: str
    retry: bool = True
    billed: bool = False
    """It may have been answered all the same, and billed."""
    load: Overload = Overload.NONE
    """What it says of how much was asked at once."""


RULES: Mapping[str, Rule] = {
    "connection": Rule(
        happened="could not be reached", todo="check the network and the base URL", load=Overload.STRAIN
    ),
    "timeout": Rule(
        happened="did not answer in time",
        todo="raise --timeout-seconds or try again later",
        billed=True,
        load=Overload.STRAIN,
    ),
    "torn": Rule(
        happened="sent a reply that is cut off or not JSON", todo="try again; is it the right URL?", billed=True
    ),
    "empty": Rule(happened="returned an incomplete reply", todo="try again later", billed=True, load=Overload.STRAIN),
    "limits": Rule(
        happened="sent a response that exceeds a limit", todo="check the base URL", retry=False, billed=True
    ),
    "redirect": Rule(
        happened="redirects to another host, which is not followed",
        todo="give the address of the API itself with --api-base",
        retry=False,
    ),
    "conflict": Rule(happened="was busy with a conflicting request", todo="try again later"),
    "rate": Rule(happened="limits the rate of requests", todo="try again later or lower --jobs", load=Overload.RATE),
    "server": Rule(happened="has trouble of its own", todo="try again later", load=Overload.STRAIN),
    "key": Rule(happened="did not accept the key", todo="check the key in {key_name}", retry=False),
    "forbidden": Rule(happened="refused access", todo="check what the key in {key_name} may use", retry=False),
    "unknown": Rule(
        happened="does not know this model or address", todo="check the name and the base URL", retry=False
    ),
    "quota": Rule(happened="says the account has no money left", todo="top the account up", retry=False),
    "request": Rule(happened="refused the request", todo="check the model's name and options", retry=False),
}

_STATUS: Mapping[int, str] = {
    401: "key",
    402: "quota",
    403: "forbidden",
    404: "unknown",
    408: "timeout",
    409: "conflict",
    425: "server",
    429: "rate",
    504: "timeout",
    524: "timeout",
}

_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context window|context size"
    r"|prompt is too long|input is too long|input token count .{0,40}exceeds",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One try that gave no reply."""

    kind: str
    detail: str = ""
    """What the provider said, for people; may hold anything, so it is masked and cut before it is shown."""
    retry_after: float | None = None

    @property
    def rule(self) -> Rule:
        return RULES[self.kind]

    @property
    def context_exceeded(self) -> bool:
        return self.kind == "request" and _CONTEXT.search(self.detail) is not None

    def delay(self, tries: int, base: float) -> float:
        """Seconds before the next try: what the provider asks for, else back-off with full jitter."""
        if self.retry_after is not None:
            return self.retry_after
        return _DICE.uniform(0.0, min(_LONGEST_DELAY, base * 2.0 ** (tries - 1)))


def from_status(status: int, headers: Mapping[str, str], detail: str) -> Failure:
    """The failure that an HTTP status stands for."""
    wait = retry_after(headers, time.time())
    return Failure(kind=kind_of(status, detail), detail=f"HTTP {status}: {detail}", retry_after=wait)


def kind_of(status: int, detail: str) -> str:
    """The row of the table that an HTTP status stands for."""
    kind = _STATUS.get(status, "server" if status >= 500 else "request")
    return "quota" if kind == "rate" and "insufficient_quota" in detail else kind


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, at most `ONE_DAY`, from `retry-after-ms` or `Retry-After` as seconds or as an HTTP date;
    None if there is no such header, or if its value makes no sense."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return min(ONE_DAY, seconds * unit)
    try:
        parsed = email.utils.parsedate_tz(headers.get("retry-after"))
        return None if parsed is None else min(ONE_DAY, max(0.0, email.utils.mktime_tz(parsed) - now))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def sentence(name: str, endpoint: Endpoint, failure: Failure, tries: int, wait: float | None = None) -> str:
    """One sentence for people: which model, what happened, what to do; without the key."""
    rule = failure.rule
    said = shown(failure, endpoint)
    detail = f" ({said})" if said else ""
    after = f" after {tries} tries" if tries > 1 else ""
    asked = f"; it asks to wait {_wait(wait)}, longer than is waited for" if wait is not None else ""
    todo = rule.todo.format(key_name=endpoint.key_name or "your settings")
    return f"Model '{name}': {endpoint.title} {rule.happened}{after}{detail}{asked}; {todo}."


def _wait(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < ONE_DAY else "a day or more"


def shown(failure: Failure, endpoint: Endpoint) -> str:
    """What the provider said, without the key, in one line that is not too long and has no control characters."""
    # Masked before it is cut: half a key is no longer known as one.
    text = mask(failure.detail, endpoint.key)[:_EXCERPT]
    if _HTML.search(text):
        text = _TAGS.sub(" ", text)
    return printable(text)[:300].strip()


def mask(text: str, key: str) -> str:
    """The text without the key, nor anything that looks like one."""
    if key:
        text = text.replace(key, HIDDEN)
    text = MASKER.redact(text)
    return LIKE_A_KEY.sub(HIDDEN, redact_by_name(text))
