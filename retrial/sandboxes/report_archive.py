"""Reads the archive of reports that leaves a sandbox: in memory, regular files only, nothing is believed.

`tarfile` is not used: its long tail (sparse files, extended headers, negative sizes) is what a forger would reach for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

BLOCK = 512
REGULAR = (b"0", b"\0")
LONG_NAME = b"L"


def read(archive: bytes) -> Mapping[str, bytes] | None:
    """Relative path → content; None when the archive is not whole."""
    found: dict[str, bytes] = {}
    try:
        for kind, name, content in _members(archive):
            if kind in REGULAR and (path := _safe(name)):
                found[path] = content
    except ValueError:
        return None
    return found


def _members(archive: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(type, name, content) of each member, up to the block of zeros that ends the archive."""
    position, long_name = 0, b""
    while True:
        header = archive[position : position + BLOCK]
        if len(header) < BLOCK:
            raise ValueError("the archive is cut")
        if not header.strip(b"\0"):
            return
        kind = header[156:157]
        start, size = position + BLOCK, _size(header)
        if start + size > len(archive):
            raise ValueError("a member is cut")
        content = archive[start : start + size]
        position = start + -(-size // BLOCK) * BLOCK
        if kind == LONG_NAME:
            long_name = content
        else:
            yield kind, long_name or _name(header), content
            long_name = b""


def _size(header: bytes) -> int:
    """Octal only: the binary form is for sizes far above any limit of ours."""
    digits = header[124:136].strip(b"\0 ")
    if not digits.isdigit():
        raise ValueError("a member's size is not a number")
    return int(digits, 8)


def _name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _safe(name: bytes) -> str:
    """The name as a plain relative path; empty when it is none."""
    text = name.split(b"\0")[0].decode(errors="replace")
    path = PurePosixPath(text)
    if text.endswith("/") or path.is_absolute() or ".." in path.parts:
        return ""
    return "" if str(path) == "." else str(path)
