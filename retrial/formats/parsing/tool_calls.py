"""Calls of a format's one function: its schema, and what the arguments of a reply's calls list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from retrial.chat import Fault, Reply, Tool, ToolCall, ToolFunction
from retrial.formats import Refused, shorten

NO_CALL = "Your reply does not call the function {function}, so nothing was changed. Call it with all your edits."
OTHER = "Nothing was changed: there is no function '{name}'. Call {function} with all your edits."
NOT_JSON = "Nothing was changed: the arguments of {function} are not valid JSON ({why}). Call it again with all edits."
NO_LIST = "Nothing was changed: {function} needs `{key}`, a list of objects that is not empty."
NO_FIELD = "Nothing was changed: item {number} of `{key}` has no `{field}`, or it is not {what}."
CUT = "Your reply was cut off before the call of {function} was complete. Write less around it."

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
_PAIRS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFunction:
    """A function that takes a list `key` of objects; all their fields are strings."""

    name: str
    description: str
    key: str
    fields: Mapping[str, str]
    """Name of each field → its description."""

    @property
    def tool(self) -> Tool:
        texts = {field: {"type": "string", "description": text} for field, text in self.fields.items()}
        item = {"type": "object", "properties": texts, "required": list(self.fields), "additionalProperties": False}
        parameters = {
            "type": "object",
            "properties": {self.key: {"type": "array", "items": item}},
            "required": [self.key],
            "additionalProperties": False,
        }
        return Tool(function=ToolFunction(name=self.name, description=self.description, parameters=parameters))


def items(called: ListFunction, reply: Reply) -> Iterator[dict[str, str]]:
    """What all calls of a reply list, with every field of the function's objects; texts have LF.

    Raises: Refused.
    """
    function = called.name
    if not reply.calls and reply.finish == "length":
        raise Refused(CUT.format(function=function), Fault.CUT_OFF)
    if not reply.calls:
        raise Refused(NO_CALL.format(function=function), Fault.BROKEN_CALL)
    for each in reply.calls:
        if each.name != function:
            raise Refused(OTHER.format(name=shorten(each.name), function=function), Fault.BROKEN_CALL)
        yield from _listed(called, _read(each, cut=reply.finish == "length"))


def _read(each: ToolCall, *, cut: bool) -> object:
    """The arguments. Brackets that are missing at the end are added, unless the reply was cut off there."""
    try:
        # Models write line ends and tabs into strings as they are.
        return json.loads(each.arguments, strict=False)
    except (ValueError, RecursionError) as error:
        if cut:
            raise Refused(CUT.format(function=each.name), Fault.CUT_OFF) from error
        refused = Refused(NOT_JSON.format(function=each.name, why=error), Fault.BROKEN_CALL)
    try:
        return json.loads(_closed(each.arguments), strict=False)
    except (ValueError, RecursionError) as error:
        raise refused from error


def _closed(text: str) -> str:
    """With the brackets that are still open closed; inside a string nobody knows what else is missing."""
    still_open: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _PAIRS:
            still_open.append(_PAIRS[token])
        elif token in "]}" and still_open:
            still_open.pop()
    return text + "".join(reversed(still_open))


def _listed(function: ListFunction, arguments: object) -> Iterator[dict[str, str]]:
    key = function.key
    listed = _decoded(arguments.get(key)) if isinstance(arguments, dict) else None
    if not isinstance(listed, list) or not listed or not all(isinstance(item, dict) for item in listed):
        raise Refused(NO_LIST.format(function=function.name, key=key), Fault.BROKEN_CALL)
    for number, item in enumerate(listed, start=1):
        texts = {field: _text(field, item.get(field)) for field in function.fields}
        for field, text in texts.items():
            if text is None or (field == "path" and not text):
                what = "a path" if field == "path" else "a string"
                problem = NO_FIELD.format(number=number, key=key, field=field, what=what)
                raise Refused(problem, Fault.BROKEN_CALL)
        yield {field: text or "" for field, text in texts.items()}


def _decoded(value: object) -> object:
    """A list as it is. Some models write one as a string with JSON in it."""
    try:
        return json.loads(value, strict=False) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _text(field: str, value: object) -> str | None:
    """A string, or a list of lines; None if it is neither."""
    if field == "path":
        return value.strip().removeprefix("./") if isinstance(value, str) else None
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(line.removesuffix("\n").removesuffix("\r") + "\n" for line in value)
    return value.replace("\r\n", "\n") if isinstance(value, str) else None
