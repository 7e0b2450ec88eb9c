"""The lines of a patch, one after the other, and what follows a section's names: hunks, or binary data."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator

from retrial.errors import PatchError

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@(.*)")
_BLOCK = re.compile(r"(literal|delta) ([0-9]{1,12})")
MAX_BINARY_BYTES = 10_000_000
"""Of one file: a few hundred kilobytes of patch can unfold into gigabytes."""
MAX_UNFOLDED_BYTES = 40_000_000
"""Of all of them, before and after."""
CHOPPED = 3
"""Blank lines that may be missing at the end of a patch, which are context: many programs strip what they read."""
_LENGTHS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The first letter of a line of binary data is how many bytes it stands for."""
_SIZES_BYTES = 20
_BASE85 = re.compile(r"[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5,}")
_SIGNATURE = "-- "
# How far a line of a hunk goes on in the old and in the new file; some tools write empty context lines as empty lines.
_STEPS = {" ": (1, 1), "": (1, 1), "-": (1, 0), "+": (0, 1), "\\": (0, 0)}


class LineReader:
    """Lines, and where in them we are."""

    def __init__(self, lines: list[str], at: int = 0) -> None:
        self.lines = lines
        self.at = at
        self.unfolded = 0
        """Bytes of the binary data so far."""

    @property
    def done(self) -> bool:
        return self.at >= len(self.lines)

    @property
    def line(self) -> str:
        return "" if self.done else self.lines[self.at]

    def take(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def starts(self, *beginnings: str) -> bool:
        """The next lines begin so."""
        lines = self.lines[self.at : self.at + len(beginnings)]
        return len(lines) == len(beginnings) and all(map(str.startswith, lines, beginnings))

    def at_plain_section(self) -> bool:
        return self.starts("--- ", "+++ ", "@@ -")

    def problem(self, what: str) -> PatchError:
        return PatchError(f"Line {self.at + 1} of the patch {what}: {self.line[:60]!r}.")


def read_hunks(reader: LineReader) -> list[str]:
    """The lines of all hunks here, each hunk with the counts it really has."""
    lines: list[str] = []
    while reader.starts("@@ -"):
        match = _HUNK.fullmatch(reader.line)
        if not match:
            raise reader.problem("is not a hunk's first line")
        header = reader.take()
        size = _promised(reader, int(match[2] or 1), int(match[4] or 1))
        if size is None:
            size = _found(reader)
            old, new = _count(reader.lines[reader.at : reader.at + size])
            if _cut_off(reader, size, int(match[2] or 1) - old, int(match[4] or 1) - new):
                raise PatchError("The patch ends in the middle of a hunk: it was cut off, or its counts are wrong.")
            header = f"@@ -{match[1]},{old} +{match[3]},{new} @@{match[5]}"
        lines += [header, *reader.lines[reader.at : reader.at + size]]
        reader.at += size
    return lines


def _promised(reader: LineReader, old: int, new: int) -> int | None:
    """How many lines a hunk has, if its counts are right."""
    at = reader.at
    while old > 0 or new > 0:
        step = _STEPS.get(reader.lines[at][:1]) if at < len(reader.lines) else None
        if step is None:
            return None
        old, new, at = old - step[0], new - step[1], at + 1
    if at < len(reader.lines) and reader.lines[at].startswith("\\"):
        at += 1
    # Lines left over would be skipped as prose, and half a hunk applied.
    exact = old == new == 0 and not _is_change(reader, at)
    return at - reader.at if exact else None


def _is_change(reader: LineReader, at: int) -> bool:
    """A line that can only belong to the hunk before it."""
    line = reader.lines[at] if at < len(reader.lines) else ""
    return line[:1] in ("+", "-", " ") and line != _SIGNATURE and not LineReader(reader.lines, at).at_plain_section()


def _found(reader: LineReader) -> int:
    """How many lines follow that can belong to a hunk whose counts are wrong."""
    at = reader.at
    while at < len(reader.lines) and (_is_change(reader, at) or reader.lines[at][:1] in ("", "\\")):
        at += 1
    while at > reader.at and not reader.lines[at - 1]:
        at -= 1
    return at - reader.at


def _cut_off(reader: LineReader, size: int, old: int, new: int) -> bool:
    """The patch ends with this hunk, which promised so many more lines of either file."""
    rest = range(reader.at + size, len(reader.lines))
    return max(old, new) > 0 and not 0 < old == new <= CHOPPED and not any(reader.lines[at] for at in rest)


def _count(lines: list[str]) -> tuple[int, int]:
    steps = [_STEPS[line[:1]] for line in lines]
    return sum(old for old, _ in steps), sum(new for _, new in steps)


def read_binary(reader: LineReader) -> list[str]:
    """A `GIT binary patch` with its one or two blocks; each ends with an empty line."""
    lines = [reader.take()]
    while block := _BLOCK.fullmatch(reader.line):
        _unfold(reader, int(block[2]))
        lines.append(reader.take())
        start = reader.at
        while _BASE85.fullmatch(reader.line):
            reader.at += 1
        data = reader.lines[start : reader.at]
        if block[1] == "delta":
            _unfold(reader, _size_after(reader, data))
        lines += [*data, ""]
        reader.at += not reader.line
    return lines


def _unfold(reader: LineReader, size: int) -> None:
    reader.unfolded += size
    if size > MAX_BINARY_BYTES or reader.unfolded > MAX_UNFOLDED_BYTES:
        which = "a file larger than 10 MB" if size > MAX_BINARY_BYTES else "binary files of more than 40 MB"
        raise reader.problem(f"makes {which}")


def _size_after(reader: LineReader, data: list[str]) -> int:
    """A delta begins with the sizes of the file before and after it: a few bytes of it can stand for any number."""
    try:
        packed = b"".join(base64.b85decode(line[1:])[: _LENGTHS.index(line[0]) + 1] for line in data)
        sizes = list(_sizes(zlib.decompressobj().decompress(packed, _SIZES_BYTES)))
        return sizes[1]
    except (ValueError, zlib.error, IndexError):
        raise reader.problem("ends binary data that cannot be read") from None


def _sizes(head: bytes) -> Iterator[int]:
    """Seven bits a byte, the lowest first."""
    size = shift = 0
    for byte in head:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield size
            size = shift = 0
