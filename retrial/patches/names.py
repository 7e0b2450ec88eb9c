"""File names as patches have them: which ones are allowed, and how git quotes them."""

from __future__ import annotations

import re

from retrial.errors import PatchError

DEEPEST = 250
"""Folders in folders. No tree of anybody's is half as deep, and whoever goes down it must come to an end."""
# What Windows and macOS take for `.git`: its short name, streams of it, dots and blanks behind it, unseen signs in it.
_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
# Most names, and nothing of what follows can be in them.
_PART = r"(?:\.(?!git))?\w[\w.-]*"
_SIMPLE = re.compile(f"{_PART}(?:/{_PART})*", re.ASCII | re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = dict(zip(b'abfnrtv\\"', b'\a\b\f\n\r\t\v\\"', strict=True))


def check_name(name: str) -> str:
    """The name, if a patch may have it.

    Raises: PatchError.
    """
    if _SIMPLE.fullmatch(name) and len(name) <= DEEPEST:
        return name
    parts = name.split("/")
    if _CONTROL.search(name):
        raise PatchError(f"The path {name!r} has control characters.")
    if name.startswith("/"):
        raise PatchError(f"The path '{name}' is absolute.")
    if ".." in parts:
        raise PatchError(f"The path '{name}' leaves the tree.")
    if any(_GIT.fullmatch(_UNSEEN.sub("", part)) for part in parts):
        raise PatchError(f"The path '{name}' lies in a git folder.")
    if len(parts) > DEEPEST:
        raise PatchError(f"The path '{name[:100]}…' goes through more than {DEEPEST} folders.")
    if "" in parts or "." in parts:
        raise PatchError(f"The path '{name}' is not a plain relative path.")
    return name


def plain_path(path: str) -> str:
    """Return a path for a message: one with control characters is escaped, so that it stays on its line."""
    return path if path.isprintable() else ascii(path)


def encode(text: str) -> bytes:
    """Text as it travels here, bytes that are not UTF-8 included.

    Raises: PatchError for half a surrogate pair, which stands for no byte.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError(f"There is half a character at position {error.start}.") from error


def decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def quote(name: str) -> str:
    """A name as git writes it: in C quotes where it has quotes, backslashes, or anything but ASCII."""
    encoded = encode(name)
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in encoded) and not name.endswith(" "):
        return name
    return '"' + "".join(map(_quoted_byte, encoded)) + '"'


def _quoted_byte(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def unquote(text: str) -> str:
    """The name that `"…"` stands for.

    Raises: PatchError.
    """
    return decode(_ESCAPE.sub(_unescaped, encode(text[1:-1])))


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if len(escape) == 3:
        return bytes([int(escape, 8)])
    if escape[0] not in _ESCAPES:
        raise PatchError(f"A quoted path has the unknown escape {decode(match[0])!r}.")
    return bytes([_ESCAPES[escape[0]]])
