"""A task's transcript from its journal: every attempt, message, check and outcome; and the same as Markdown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrial.chat import Message, Reply
from retrial.store.attempt_log import AttemptEvents, last_ladder, split_by_attempt, verdicts
from retrial.store.events import (
    AgentChat,
    AttemptBegun,
    AttemptEnded,
    AttemptOver,
    AttemptsDiscarded,
    CallFailed,
    Event,
    Replied,
    Requested,
    TaskNotMeasured,
    VisibleChecked,
)
from retrial.store.records import AttemptRecord
from retrial.system.console import money
from retrial.types import Verdict

TEXT = "text"
"""The language of what is no code."""
SHOWN_CHARACTERS = 8000
"""Of a check's output, half of them its first and half its last."""
_FENCE = re.compile(r"(`{3,})(\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    text: str
    heading: bool = False
    """It begins a message, a check or a patch."""
    language: str = ""
    """Language of a text from outside; empty for our own words."""

    def __str__(self) -> str:
        if self.heading:
            return f"### {self.text}"
        return fenced(self.text, self.language) if self.language else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTranscript:
    heading: str
    parts: list[Part]


def attempts(events: Iterable[Event]) -> list[AttemptTranscript]:
    """The last go at the task, attempt by attempt."""
    journal = list(events)
    checks = verdicts(journal)
    return [_attempt(attempt, checks) for attempt in last_ladder(split_by_attempt(journal))]


def markdown(instance_id: str, outcome: str, events: Iterable[Event]) -> str:
    """The same, after the result and, of earlier goes, why they did not count."""
    journal = list(events)
    left = (event for event in journal if isinstance(event, TaskNotMeasured | AttemptsDiscarded))
    before = [f"An earlier go was not measured: {_sentence(event.reason)}" for event in left]
    lines = [f"# {instance_id}", f"**Result:** {_sentence(outcome)}", *before]
    for attempt in attempts(journal):
        lines += [f"## {attempt.heading}", *map(str, attempt.parts)]
    return "\n\n".join(lines) + "\n"


def from_markdown(text: str) -> list[AttemptTranscript]:
    """Read back what `markdown` made: all that a run made of several has of its chats.

    What others said stands in fences that nothing in them can end, so lines outside of fences are our own.
    """
    found = list[AttemptTranscript]()
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("## "):
            found.append(AttemptTranscript(heading=line[3:], parts=[]))
        elif found and (fence := _FENCE.fullmatch(line)):
            found[-1].parts.append(Part(text="\n".join(iter(lines.__next__, fence[1])), language=fence[2]))
        elif found and line:
            heading = line.startswith("### ")
            found[-1].parts.append(Part(text=line.removeprefix("### "), heading=heading))
    return found


def fenced(text: str, language: str = TEXT) -> str:
    """A block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0) if "```" in text else 0
    fence = "`" * max(3, 1 + longest)
    whole = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{whole}{fence}"


def _attempt(attempt: AttemptEvents, checks: Mapping[str, Verdict]) -> AttemptTranscript:
    ended = next((event.result for event in attempt.events if isinstance(event, AttemptEnded)), None)
    parts = list[Part]()
    said: tuple[Message, ...] = ()
    checked = ""
    for event in attempt.events:
        match event:
            case Requested():
                parts += [part for message in _new(said, event.request.messages) for part in _message(message)]
                said = event.request.messages
            case Replied():
                spoken = Message(role="assistant", content=event.reply.text, calls=event.reply.calls)
                said = (*said, spoken)
                parts += [*_message(spoken), Part(text=f"*{_sentence(_call(event.call or 0, event.reply))}*")]
            case VisibleChecked() if event.key in checks.keys() - {checked}:
                checked = event.key
                parts += _check(checks[checked])
            case CallFailed():
                parts.append(Part(text=f"*call {event.call} failed: {_sentence(event.reason)}*"))
            case AttemptOver():
                parts.append(Part(text=f"*no further call: {_sentence(event.reason)}*"))
            case AgentChat():
                parts += [part for message in event.messages for part in _message(message)]
    end = _end(ended) if ended else [Part(text="**Outcome:** none, it did not come to its end.")]
    return AttemptTranscript(heading=_heading(attempt.begun, ended), parts=parts + end)


def _heading(begun: AttemptBegun, result: AttemptRecord | None) -> str:
    sampling = begun.sampling
    named = [f"round {result.round}", result.edit_format or "no format"] if result else []
    how = [*named, f"seed {sampling.seed}", f"temperature {sampling.temperature:g}"]
    return f"Attempt {begun.attempt}: {begun.model} ({', '.join(how)})"


def _new(said: Sequence[Message], messages: Sequence[Message]) -> Sequence[Message]:
    """What was not said before: most questions carry the whole chat so far."""
    same = [_message_key(message) for message in messages[: len(said)]] == [_message_key(message) for message in said]
    return messages[len(said) :] if same else messages


def _message_key(message: Message) -> tuple[object, ...]:
    """A reply comes back without its reasoning: who spoke and what was called is enough to know it by."""
    return message.role, "" if message.role == "assistant" else message.content, message.calls


def _message(message: Message) -> Iterator[Part]:
    answers = f", to {_code(message.call_id)}" if message.call_id else ""
    yield Part(text=f"{message.role}{answers}", heading=True)
    if message.content or not message.calls:
        yield Part(text=message.content, language=TEXT)
    for call in message.calls:
        yield Part(text=f"Calls {_code(call.name)}:")
        yield from _arguments(call.arguments)


def _code(name: str) -> str:
    return "`" + _sentence(name).replace("`", "'") + "`"


def _arguments(text: str) -> list[Part]:
    try:
        return [part for name, value in _leaves(json.loads(text)) for part in _argument(name, value)]
    except (ValueError, RecursionError):
        # What a model took for JSON.
        return [Part(text=text, language=TEXT)]


def _leaves(value: object, name: str = "arguments") -> Iterator[tuple[str, object]]:
    """All that a JSON value holds, by where it is: `arguments.files.0.content`."""
    held = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    if not held:
        yield name, value
    for key, each in held.items():
        yield from _leaves(each, f"{name}.{key}")


def _argument(name: str, value: object) -> Iterator[Part]:
    """Text of several lines is shown as such: escaped, a file can hardly be read."""
    if isinstance(value, str) and "\n" in value:
        yield from (Part(text=f"{_code(name)}:"), Part(text=value, language=TEXT))
    elif "`" in (line := json.dumps(value, ensure_ascii=False)):
        yield from (Part(text=f"{_code(name)}:"), Part(text=line, language="json"))
    else:
        yield Part(text=f"{_code(name)}: `{line}`")


def _call(number: int, reply: Reply) -> str:
    usage = reply.usage
    kinds = [(usage.prompt_tokens, "prompt"), (usage.cached_tokens, "cached"), (usage.completion_tokens, "completion")]
    tokens = [f"{tokens} {kind}" for tokens, kind in [*kinds, (usage.reasoning_tokens, "reasoning")] if tokens]
    facts = [f"{', '.join(tokens)} tokens" if tokens else "", money(usage.cost), f"{usage.seconds:.1f} s"]
    facts += [f"{usage.retries} failed before it"] if usage.retries else []
    facts += [f"ended by {reply.finish}"] if reply.finish != "stop" else []
    facts += [f"served by {reply.model}"] if reply.model else []
    return f"call {number}: {'; '.join(fact for fact in facts if fact)}"


def _check(verdict: Verdict) -> Iterator[Part]:
    tests = Counter(verdict.tests.values())
    found = ", ".join(f"{number} {status}" for status, number in sorted(tests.items()))
    yield Part(text=f"check: {verdict.outcome}", heading=True)
    yield Part(text=_sentence(f"Tests: {found or 'none'}. {verdict.reason}"))
    if verdict.chosen:
        yield Part(text=f"Test files: {', '.join(map(_code, verdict.chosen))}.")
    if verdict.fallbacks:
        yield Part(text="\n".join(f"- given up: {_sentence(fallback)}" for fallback in verdict.fallbacks))
    if verdict.lint:
        yield Part(text="New errors (lint):")
        yield Part(text=_bounded("\n".join(verdict.lint)), language=TEXT)
    if said := verdict.telling or verdict.output:
        yield Part(text=_bounded(said), language=TEXT)


def _bounded(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    half = SHOWN_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _end(result: AttemptRecord) -> list[Part]:
    faults = ", ".join(f"{kind} {number}" for kind, number in sorted(result.faults.items()))
    notes = "\n".join(f"- note: {_sentence(note)}" for note in result.notes)
    patch = [Part(text="patch", heading=True), Part(text=result.model_patch, language="diff")]
    return [
        *([Part(text=f"Malformed replies: {faults}.")] if faults else []),
        *([Part(text=notes)] if notes else []),
        *(patch if result.model_patch else []),
        Part(text=f"**Outcome:** {_outcome(result)}"),
    ]


def _outcome(result: AttemptRecord) -> str:
    if result.error:
        return f"not measured: {_sentence(result.error)}"
    if result.plausible:
        return "plausible: the edit is well formed, has no new errors, and the visible tests pass."
    reason = _sentence(result.visible.reason)
    if result.unverified:
        return f"unverified: {reason}"
    if not result.model_patch:
        return "no edit."
    asked = {
        "the last reply was malformed": result.edit_outcome,
        "it has new errors": result.lint_outcome,
        "tests do not pass": result.test_outcome,
    }
    wrong = [what for what, right in asked.items() if not right]
    return f"not plausible ({', '.join(wrong) or 'nothing of the patch counts'}): {reason}"


def _sentence(text: str) -> str:
    """On one line, whoever wrote it."""
    return " ".join(text.split())
