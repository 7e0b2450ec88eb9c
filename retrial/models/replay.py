"""Recorded replies. `-m replay:RUN` plays a run of harness.py again, from its journals (`predict/metering/recording`).

`-m replay/FILE` takes them from a JSONL file, for tests and demonstrations. Each line is one JSON object:

    {"text": "the reply"}                                    used once, for any question
    {"text": "…", "match": "leap.py"}                        used once, for a question that has `leap.py` in any message
    {"text": "…", "match": "leap.py", "repeat": true}        used any number of times
    {"error": "The provider is down."}                       raises ModelError with this sentence

Also understood: `finish` ("stop" or "length"), `prompt_tokens`, `completion_tokens`, `cost` (USD; null is unknown; 0 if
not given), `calls` (a list of {"name": …, "arguments": "JSON text" or an object}), and `task` and `model`, which are
for readers of the file only. A question gets the first line, in file order, that fits and is not used up; if there is
none, that is an error and never an empty reply. Lines are used up for the whole process, by all threads together.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial.chat import Json, Reply, Request, ToolCall, Usage
from retrial.errors import ModelError, UsageError
from retrial.models.wire import MOST_COST, MOST_TOKENS
from retrial.protocols import ModelContext
from retrial.system.files import read_file

_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "error": (str,),
    "match": (str,),
    "repeat": (bool,),
    "finish": (str,),
    "prompt_tokens": (int,),
    "completion_tokens": (int,),
    "cost": (int, float, type(None)),
    "calls": (list,),
    "task": (str,),
    "model": (str,),
}
_MOST: dict[str, float] = {"prompt_tokens": MOST_TOKENS, "completion_tokens": MOST_TOKENS, "cost": MOST_COST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One recorded reply, or an error to raise."""

    reply: Reply
    match: str = ""
    repeat: bool = False
    error: str = ""

    def fits(self, request: Request) -> bool:
        return any(self.match in message.content for message in request.messages)


class ReplayModel:
    """Answers from the file, each line once."""

    def __init__(self, *, file: Path, lines: tuple[Line, ...]) -> None:
        self.name = f"replay/{file}"
        self._file = file
        self._left = list(lines)
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when the line says so, or when no line is left that fits."""
        with self._lock:
            line = next((line for line in self._left if line.fits(request)), None)
            if line is None:
                raise ModelError(f"replay {self._file} has no reply for: {_question(request)}")
            if not line.repeat:
                # By identity: two lines may say the same.
                self._left = [other for other in self._left if other is not line]
        if line.error:
            raise ModelError(line.error)
        return line.reply


def make(context: ModelContext) -> ReplayModel:
    """Raises: UsageError when the file is missing or one of its lines is not a recorded reply."""
    if not context.name:
        raise UsageError("Model 'replay' needs a file: -m replay/FILE.jsonl")
    file = Path(context.name).expanduser()
    try:
        text = read_file(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Model 'replay/{context.name}': the file {file} cannot be read: {error}.") from error
    numbered = enumerate(text.split("\n"), start=1)
    return ReplayModel(file=file, lines=tuple(_line(line, f"{file}:{at}") for at, line in numbered if line.strip()))


def _question(request: Request) -> str:
    asked = [message.content for message in request.messages if message.role == "user"]
    return " ".join((asked[-1] if asked else "a request without a question").split())[:80]


def _line(text: str, where: str) -> Line:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise UsageError(f"{where}: should be a JSON object with 'text' or 'error'.")
    _check(data, where)
    usage = Usage(
        calls=1,
        prompt_tokens=data.get("prompt_tokens", 0),
        completion_tokens=data.get("completion_tokens", 0),
        cost=data.get("cost", 0.0),
    )
    calls = tuple(_call(call, where) for call in data.get("calls", ()))
    reply = Reply(text=data.get("text", ""), calls=calls, finish=data.get("finish", "stop"), usage=usage)
    return Line(
        reply=reply,
        match=data.get("match", ""),
        repeat=data.get("repeat", False),
        error=data.get("error", ""),
    )


def _check(data: dict[str, Json], where: str) -> None:
    for name, value in data.items():
        if name not in _KINDS:
            raise UsageError(f"{where}: unknown key '{name}'; known: {', '.join(_KINDS)}.")
        # A bool is an int to isinstance, but not to people.
        if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and name != "repeat"):
            raise UsageError(f"{where}: '{name}' has a value of the wrong kind: {json.dumps(value)[:60]}.")
        if isinstance(value, int | float) and name in _MOST and not 0 <= value <= _MOST[name]:
            raise UsageError(f"{where}: '{name}' must be a number from 0 to {_MOST[name]:,.0f}.")
    if not any(data.get(name) for name in ("text", "error", "calls")) and "text" not in data:
        raise UsageError(f"{where}: has neither 'text' nor 'error'.")


def _call(data: object, where: str) -> ToolCall:
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(name, str):
        raise UsageError(f"{where}: each of 'calls' should be an object with 'name' and 'arguments'.")
    arguments = data.get("arguments", {})
    return ToolCall(name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))
