import re
from copy import deepcopy


class EditError(ValueError):
    def __init__(self, reason, index=None):
        super().__init__(reason if index is None else f"edit {index}: {reason}")
        self.reason = reason
        self.index = index


def steps_of(path):
    if path and not path.startswith("/"):
        raise EditError(f"bad path '{path}'")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def key_in(holder, step, path, end=0):
    """The step as a key of a dict or an index of a list, where the index may go `end` beyond the last."""
    if isinstance(holder, dict):
        return step
    if isinstance(holder, list):
        if end and step == "-":
            return len(holder)
        if re.fullmatch("0|[1-9][0-9]*", step) and int(step) < len(holder) + end:
            return int(step)
    raise EditError(f"no such path '{path}'")


def follow(value, steps, path):
    for step in steps:
        key = key_in(value, step, path)
        if isinstance(value, dict) and key not in value:
            raise EditError(f"no such path '{path}'")
        value = value[key]
    return value


def look(document, path):
    return follow(document, steps_of(path), path)


def put(document, path, value):
    """Set the value at a path; returns the document."""
    steps = steps_of(path)
    if not steps:
        return value
    holder = follow(document, steps[:-1], path)
    holder[key_in(holder, steps[-1], path)] = value
    return document


def insert(document, path, value):
    steps = steps_of(path)
    holder = follow(document, steps[:-1], path)
    if not steps or not isinstance(holder, list):
        raise EditError(f"not a list: '{path}'")
    holder.insert(key_in(holder, steps[-1], path, end=1), value)
    return document


def take(document, path):
    """Take the value at a path out of the document and return it."""
    steps = steps_of(path)
    if not steps:
        raise EditError("cannot remove the document")
    look(document, path)
    holder = follow(document, steps[:-1], path)
    return holder.pop(key_in(holder, steps[-1], path))


def move(document, source, path):
    source_steps, steps = steps_of(source), steps_of(path)
    if len(steps) > len(source_steps) and steps[: len(source_steps)] == source_steps:
        raise EditError(f"cannot move '{source}' into itself")
    if path == source:
        look(document, source)
        return document
    value = take(document, source)
    into_list = isinstance(follow(document, steps[:-1], path), list)
    return insert(document, path, value) if into_list else put(document, path, value)


def same(first, second):
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def apply(document, change):
    op, path = change["op"], change["path"]
    if op == "set":
        return put(document, path, deepcopy(change["value"]))
    if op == "insert":
        return insert(document, path, deepcopy(change["value"]))
    if op == "remove":
        take(document, path)
        return document
    if op == "move":
        return move(document, change["from"], path)
    if op == "expect":
        if not same(look(document, path), change["value"]):
            raise EditError(f"expectation failed at '{path}'")
        return document
    raise EditError(f"unknown op '{op}'")


def edit(document, edits):
    document = deepcopy(document)
    for index, change in enumerate(edits):
        try:
            document = apply(document, change)
        except EditError as error:
            raise EditError(error.reason, index) from None
    return document
