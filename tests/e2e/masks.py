"""What two recordings of the same behaviour may differ in, and what of a page is recorded.

`masked` hides times, dates, process ids, hosts, versions, digests of the machine's toolchain, the order in which
parallel jobs ended, and the random names of canaries; `test_recordings.py` holds what it must not hide.
"""

from __future__ import annotations

import base64
import csv
import difflib
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from html.parser import HTMLParser
from itertools import count, groupby
from pathlib import PurePosixPath
from typing import Any

OWN_TESTS = ("test_small_numbers", "test_zero")
"""The tests of the recorded tasks. Canaries have random names, made of the words of these and of some others."""
_WORDS = "numbers|small|zero|empty|single|several|large|mixed|first|last|input|value|[0-9]+"
_CANARY = re.compile(rf"\btest(?:_(?:{_WORDS}))+\b")
_OWN = "|".join(rf"{name}\b" for name in OWN_TESTS)
_CLOCK = "seconds|cpu_seconds|test_seconds|median_test_seconds"
_OF_THE_MACHINE = "python|retrial|system|version|versions|limits|host|hostname|commit_hash|crc"
_MASKS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(rf'"({_CLOCK})": [0-9][0-9.e-]*'), r'"\1": "<seconds>"'),
    (re.compile(rf'"({_OF_THE_MACHINE})": "[^"]*"'), r'"\1": "<\1>"'),
    # Not every kernel measures it.
    (re.compile(r'"cpu_seconds": null'), '"cpu_seconds": "<seconds>"'),
    (re.compile(r'"pid": [0-9]+'), '"pid": "<pid>"'),
    # Modules may move.
    (re.compile(r'"where": "[^"]*"'), '"where": "<module>"'),
    (re.compile(r'\b(time|timestamp|hostname)="[^"]*"'), r'\1="<\1>"'),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:\+00:00|Z)?"), "<time>"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "<date>"),
    (re.compile(r"\b[0-9]+\.[0-9]+( ?)s\b"), r"<seconds>\1s"),
    (re.compile(r"\b([Ss]econds:? +)[0-9]+\.[0-9]+"), r"\1<seconds>"),
    (re.compile(r"(\n +Seconds\n +)[0-9.]+"), r"\1<seconds>"),
    # Sorted by time.
    (re.compile(r"\n  \S+(\nspan [^\n]*time/slowest/)"), r"\n  <instance>\1"),
    (re.compile(r"\b(Python|pytest|pluggy)([ -])[0-9]+(?:\.[0-9]+)+"), r"\1\2<version>"),
    (re.compile(r"\b((?:Retrial|versions:|commit_hash:) )[0-9]+\.[0-9]+\.[0-9]+\b"), r"\1<version>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    # pytest fills its lines up to a width, beside times and random names.
    (re.compile(r"([=_!-])\1{3,}"), r"\1\1\1"),
    (re.compile(r" +\[ *[0-9]+%\]"), ""),
    # Of what tests printed, results have so many characters, with versions and line numbers among them.
    (re.compile(r'(?<=["\n])={1,3}(?: [a-z0-9, ]*)?(?=["\n]|</|$)'), "=== <cut>"),
    (re.compile(r"(_test\.py:)[0-9]+:"), r"\1<line>:"),
    # It cuts the reason behind a long name, and canaries have long ones.
    (re.compile(rf"\b(FAILED \w+_test\.py::(?!{_OWN})test(?:_(?:{_WORDS}))+) - [^\n\"]*"), r"\1"),
)
_SPENT = re.compile(r"(\bharness [0-9]+/[0-9]+: .* \[[0-9]+ plausible, )[0-9.]+ USD[^\]]*")
"""The next task may have been asked about already. What all of them cost is printed at the end."""
_BUSY = re.compile(r"\bonce more\b|\bat once\b")
"""What the log of a run says of a busy machine."""
_PROGRESS = re.compile(r"\breport ((?:attempts )?)[0-9]+/([0-9]+): (.*) \[[0-9]+ resolved[^\]]*\]")
_SESSION = ("test session starts ===", re.compile(r"=== .* in <seconds>s ===|=== <cut>"))


def masked(name: str, content: str) -> str:
    """Return the text of a file as it is compared; JSON is written line by line, with its keys in their order."""
    path = PurePosixPath(name)
    if path.name == "run.log":
        text = "\n".join(line for line in content.splitlines() if not _BUSY.search(json.loads(line)["message"]))
    elif path.suffix == ".csv":
        text = "\n".join(_written(_untimed(row) for row in csv.DictReader(content.splitlines())))
    elif path.suffix == ".jsonl":
        text = "\n".join(_written(_goes_numbered([json.loads(line) for line in content.splitlines()])))
    elif path.suffix in (".json", ".copy", ".lock"):
        text = "\n".join(_written([_unsized(path.name, json.loads(content))]))
    else:
        text = content
    return masked_text(text)


def masked_text(text: str) -> str:
    """Mask what a program printed."""
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    text = _CANARY.sub(lambda found: found[0] if found[0] in OWN_TESTS else "<canary>", text)
    text = _SPENT.sub(r"\1<cost> USD", text)
    text = _PROGRESS.sub(r"report \1<n>/\2: \3 [<n> resolved]", text)
    return "\n".join(_in_one_order(text.split("\n")))


def assert_same(then: str, now: str, name: str) -> None:
    """Fail with all lines that differ."""
    lines = difflib.unified_diff(then.split("\n"), now.split("\n"), f"recorded {name}", f"now {name}", n=2, lineterm="")
    found = "\n".join(lines)
    assert not found, found


def _written(values: Iterable[Any]) -> Iterator[str]:
    return (json.dumps(_by_line(value), indent=1, ensure_ascii=False) for value in values)


def _by_line(value: Any, name: str = "") -> Any:
    """Make a list of lines of each text that has several; what is sorted by time is sorted by name."""
    if isinstance(value, dict):
        return {each: _by_line(inner, each) for each, inner in value.items()}
    if isinstance(value, list):
        found = [_by_line(inner) for inner in value]
        return sorted(found, key=lambda row: str(row["instance_id"])) if name == "slowest" else found
    return value.split("\n") if isinstance(value, str) and "\n" in value else value


def _untimed(row: dict[str, str]) -> dict[str, str]:
    return {name: "<seconds>" if name == "seconds" else value for name, value in row.items()}


def _goes_numbered(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace the random name of each go at a task by its number."""
    numbers: dict[object, str] = {}
    return [
        {**line, "go": numbers.setdefault(line["go"], f"go {len(numbers) + 1}")} if "go" in line else line
        for line in lines
    ]


def _unsized(name: str, value: Any) -> Any:
    """Hide how many bytes a journal has: the times in it are written with as many digits as they need."""
    if name != "sums.json":
        return value
    return {journal: ["<bytes>", *rest] for journal, (_, *rest) in value.items()}


def _in_one_order(lines: Sequence[str]) -> Iterator[str]:
    """Sort what comes in any order: progress of parallel jobs, and the output of tests with canaries among them."""
    for kind, group in groupby(_by_session(lines), key=lambda each: each[0]):
        found = [line for _, line in group]
        canaries = any("<canary>" in line for line in found)
        yield from sorted(found) if kind == "progress" or (kind.startswith("session") and canaries) else found


def _by_session(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what each line belongs to, and the line."""
    begin, end = _SESSION
    numbers, session = count(), ""
    for line in lines:
        if begin in line:
            session = f"session {next(numbers)}"
        yield session or ("progress" if "<n>/" in line else ""), line.strip() if session else line
        if end.search(line):
            session = ""


def reduced(page: str) -> str:
    """Return what people and scripts see of a page: its texts, links and data, and digests of its style and scripts."""
    return "".join(f"{line}\n" for line in _lines(page, preformatted=True))


def _lines(page: str, *, preformatted: bool) -> list[str]:
    reader = _Page({"svg", "pre"} if not preformatted else {"svg"})
    reader.feed(page)
    reader.close()
    return reader.lines


class _Page(HTMLParser):
    """Charts are left out: where their bars end depends on a library, and their numbers are in the tables beside."""

    def __init__(self, left_out: Set[str]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._left_out = left_out
        self._within = ""
        self._skipping = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping:
            return
        shown = {name: value or "" for name, value in attrs if _is_shown(name)}
        self._within = "packed" if shown.get("id") == "packed" else tag
        self._skipping = tag if tag in self._left_out else ""
        if shown:
            self.lines.append(" ".join((tag, *(f'{name}="{value}"' for name, value in shown.items()))))

    def handle_endtag(self, tag: str) -> None:
        self._within = ""
        if tag == self._skipping:
            self._skipping = ""

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._skipping:
            self.lines += _READ.get(self._within, _texts)(data)


def _is_shown(name: str) -> bool:
    # `data-v` is what a table is sorted by; the same value is in the text.
    return name in ("id", "href") or (name.startswith("data-") and name != "data-v")


def _texts(data: str) -> list[str]:
    return [f"  {line.strip()}" for line in data.splitlines() if line.strip()]


def _digest(data: str) -> list[str]:
    return [f"  {len(data.splitlines())} lines, digest {hashlib.sha256(data.encode()).hexdigest()[:16]}"]


def _unpacked(data: str) -> list[str]:
    """Return the details of all instances, without patches, chats and logs: these are in files of their own.

    Each is named by a digest of its content, which has times in it.
    """
    pieces = [gzip.decompress(base64.b64decode(line.split()[1])).decode() for line in data.strip().splitlines()]
    return [line for piece in pieces for line in _lines(piece, preformatted=False)]


_READ: Mapping[str, Callable[[str], list[str]]] = {"style": _digest, "script": _digest, "packed": _unpacked}
