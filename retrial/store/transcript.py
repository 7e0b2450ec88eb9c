"""A task's journal as Markdown, to read: every attempt, everything said, every check, what came of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from retrial.store.attempt_log import last_ladder, split_by_attempt
from retrial.store.events import DISCARDED
from retrial.store.journal import Line
from retrial.system.console import money

SHOWN_CHARACTERS = 8000
"""Of a check's output, half of them its first and half its last."""


def markdown(instance_id: str, outcome: str, lines: Iterable[Line]) -> str:
    """The last go at the task, attempt by attempt; of earlier ones, why they did not count."""
    journal = list(lines)
    ladder = last_ladder(split_by_attempt(journal))
    left = (line for line in journal if line["event"] in ("not_measured", DISCARDED))
    before = [f"An earlier go was not measured: {_sentence(line['reason'])}" for line in left]
    parts = [f"# {instance_id}", f"**Result:** {_sentence(outcome)}", *before]
    verdicts = {line["key"]: line["verdict"] for line in _of(journal, "check") if "verdict" in line}
    for attempt in ladder:
        parts += _attempt(attempt, verdicts)
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str = "text") -> str:
    """A block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0) if "```" in text else 0
    fence = "`" * max(3, 1 + longest)
    whole = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{whole}{fence}"


def _attempt(lines: Sequence[Line], verdicts: Mapping[str, Any]) -> list[str]:
    ended = next((line["result"] for line in _of(lines, "attempt_ended")), None)
    parts = [f"## {_heading(lines[0], ended or {})}"]
    said: list[Mapping[str, Any]] = []
    checked = ""
    for line in lines:
        match line["event"]:
            case "request":
                parts += [_message(message) for message in _new(said, line["request"]["messages"])]
                said = line["request"]["messages"]
            case "reply":
                spoken = {"role": "assistant", "content": line["reply"]["text"], "calls": line["reply"]["calls"]}
                said = [*said, spoken]
                parts += [_message(spoken), f"*{_sentence(_call(line['call'], line['reply']))}*"]
            case "check" if line["key"] in verdicts.keys() - {checked}:
                checked = line["key"]
                parts += _check(verdicts[checked])
            case "failed":
                parts += [f"*call {line['call']} failed: {_sentence(line['reason'])}*"]
            case "over":
                parts += [f"*no further call: {_sentence(line['reason'])}*"]
            case "agent_chat":
                parts += [_message(message) for message in line["messages"]]
    return parts + (_end(ended) if ended else ["**Outcome:** none, it did not come to its end."])


def _heading(started: Line, result: Mapping[str, Any]) -> str:
    sampling = started["sampling"]
    named = [f"round {result['round']}", str(result["edit_format"] or "no format")] if result else []
    how = [*named, f"seed {sampling['seed']}", f"temperature {sampling['temperature']:g}"]
    return f"Attempt {started['attempt']}: {started['model']} ({', '.join(how)})"


def _new(said: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """What was not said before: most questions carry the whole chat so far."""
    same = [_message_key(message) for message in messages[: len(said)]] == [_message_key(message) for message in said]
    return messages[len(said) :] if same else messages


def _message_key(message: Mapping[str, Any]) -> tuple[object, ...]:
    """A reply comes back without its reasoning: who spoke and what was called is enough to know it by."""
    text = "" if message["role"] == "assistant" else message["content"]
    return message["role"], text, json.dumps(message.get("calls", []))


def _message(message: Mapping[str, Any]) -> str:
    answers = f", to {_code(message['call_id'])}" if message.get("call_id") else ""
    calls = [f"Calls {_code(call['name'])}:\n\n{_arguments(call['arguments'])}" for call in message.get("calls", ())]
    content = [fenced(message["content"])] if message["content"] or not calls else []
    return "\n\n".join([f"### {message['role']}{answers}", *content, *calls])


def _code(name: str) -> str:
    return "`" + _sentence(name).replace("`", "'") + "`"


def _arguments(text: str) -> str:
    try:
        return "\n\n".join(f"{_code(name)}:{_value(value)}" for name, value in _leaves(json.loads(text)))
    except (ValueError, RecursionError):
        # What a model took for JSON.
        return fenced(text)


def _leaves(value: object, name: str = "arguments") -> Iterator[tuple[str, object]]:
    """All that a JSON value holds, by where it is: `arguments.files.0.content`."""
    held = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    if not held:
        yield name, value
    for key, each in held.items():
        yield from _leaves(each, f"{name}.{key}")


def _value(value: object) -> str:
    """Text of several lines is shown as such: escaped, a file can hardly be read."""
    if isinstance(value, str) and "\n" in value:
        return f"\n\n{fenced(value)}"
    line = json.dumps(value, ensure_ascii=False)
    return f"\n\n{fenced(line, 'json')}" if "`" in line else f" `{line}`"


def _call(number: int, reply: Mapping[str, Any]) -> str:
    usage = reply["usage"]
    kinds = [("prompt", "prompt_tokens"), ("cached", "cached_tokens"), ("completion", "completion_tokens")]
    tokens = [f"{usage[name]} {kind}" for kind, name in [*kinds, ("reasoning", "reasoning_tokens")] if usage.get(name)]
    facts = [f"{', '.join(tokens)} tokens" if tokens else "", money(usage["cost"]), f"{usage.get('seconds', 0):.1f} s"]
    facts += [f"{usage['retries']} failed before it"] if usage.get("retries") else []
    facts += [f"ended by {reply['finish']}"] if reply["finish"] != "stop" else []
    facts += [f"served by {reply['model']}"] if reply.get("model") else []
    return f"call {number}: {'; '.join(fact for fact in facts if fact)}"


def _check(verdict: Mapping[str, Any]) -> list[str]:
    tests = Counter(verdict["tests"].values())
    found = ", ".join(f"{number} {status}" for status, number in sorted(tests.items()))
    output = "\n".join(part.rstrip() for part in (verdict["stdout"], verdict["stderr"]) if part.rstrip())
    chosen = [f"Test files: {', '.join(map(_code, verdict['chosen']))}."] if verdict.get("chosen") else []
    given_up = [f"- given up: {_sentence(fallback)}" for fallback in verdict.get("fallbacks", ())]
    lint = ["New errors (lint):", fenced(_bounded("\n".join(verdict["lint"])))] if verdict["lint"] else []
    said = verdict["telling"] or output
    return [
        f"### check: {verdict['outcome']}",
        _sentence(f"Tests: {found or 'none'}. {verdict['reason']}"),
        *chosen,
        *(["\n".join(given_up)] if given_up else []),
        *lint,
        *([fenced(_bounded(said))] if said else []),
    ]


def _bounded(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    half = SHOWN_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _end(result: Mapping[str, Any]) -> list[str]:
    faults = ", ".join(f"{kind} {number}" for kind, number in sorted(result["faults"].items()))
    notes = [f"- note: {_sentence(note)}" for note in result["notes"]]
    return [
        *([f"Malformed replies: {faults}."] if faults else []),
        *(["\n".join(notes)] if notes else []),
        *(["### patch", fenced(result["model_patch"], "diff")] if result["model_patch"] else []),
        f"**Outcome:** {_outcome(result)}",
    ]


def _outcome(result: Mapping[str, Any]) -> str:
    if result["error"]:
        return f"not measured: {_sentence(result['error'])}"
    if result["plausible"]:
        return "plausible: the edit is well formed, has no new errors, and the visible tests pass."
    reason = _sentence(result["visible"]["reason"])
    if result["unverified"]:
        return f"unverified: {reason}"
    if not result["model_patch"]:
        return "no edit."
    wrong = [what for what, right in _ASKED.items() if not result[right]]
    return f"not plausible ({', '.join(wrong) or 'nothing of the patch counts'}): {reason}"


_ASKED = {
    "the last reply was malformed": "edit_outcome",
    "it has new errors": "lint_outcome",
    "tests do not pass": "test_outcome",
}


def _sentence(text: str) -> str:
    """On one line, whoever wrote it."""
    return " ".join(text.split())


def _of(lines: Iterable[Line], event: str) -> Iterator[Line]:
    return (line for line in lines if line.get("event") == event)
