"""What people must not find written down: keys and passwords that this program uses or was given, in whatever form.

`redact_by_name` works by names, for options and addresses; `redact` by values: every text for people goes through it.

Values are known for certain (a model's key, a login in an address, what an agent is given) or only guessed from the
name of an environment variable. What is read back as data, such as a patch or a reply, goes through `redact_data`,
which knows the certain ones alone: a guess may be wrong, and would then change code. See docs/trust.md, "Keys".
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, TextIO, cast
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "***"
READER_GONE = (errno.EPIPE, errno.EIO)
"""Of a pipe, and of a terminal."""
SHORTEST = 12
"""Of a key: no provider has shorter ones, and people write anything where a server of their own wants some key."""
SHORTEST_PASSWORD = 8
DEPTH = 4
"""So many times over, a value is known in JSON: in an error in a call in a reply in a journal."""

_IN_AN_ADDRESS = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_NAMED = re.compile(
    r'("[^"]*(?:key|token|secret|password|authorization)"\s*:\s*)"(?:[^"\\]|\\.)*"', re.IGNORECASE | re.DOTALL
)
"""In JSON: text whose name ends in one of these words."""
_WORDS = "(?:key|token|secret|password|passwd|passphrase|authorization)"
_NAME = re.compile(f"{_WORDS}$", re.IGNORECASE)
_PLAIN = re.compile(r"(?=.{,19}$)[A-Za-z]+(?:[ _-][A-Za-z]+)*|[\d.,:+-]+")
"""A word, a few (`not-needed`) or a number: those stand everywhere, and JSON would break without its numbers."""
_TOKEN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16,}")
"""Letters and digits in a row as nobody writes them by hand."""
_NAMED_ARGUMENT = re.compile(rf"{_WORDS}(?:=| +)['\"]?([^\s&;'\"]+)", re.IGNORECASE)
"""`NAME=value`, `--name value`, `?name=value`."""
_BEARER = re.compile(r"\bBearer +([^\s'\"]+)", re.IGNORECASE)
LIKE_A_KEY = re.compile(r"\b(?:sk|gsk|xai|pk|key)-[\w*-]{6,}|AIza[\w-]{10,}")
"""As providers make them."""
_URL_SAFE = str.maketrans("+/", "-_")


def redact_by_name(text: str) -> str:
    """The text, an address, a JSON object or words that hold such, as it may be shown and kept."""
    return _NAMED.sub(rf'\1"{HIDDEN}"', _IN_AN_ADDRESS.sub(HIDDEN, text))


class SecretMasker:
    """Values that are not to be seen; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._guesses: frozenset[str] = frozenset()
        self._texts: tuple[str, ...] = ()
        self._bytes: tuple[bytes, ...] = ()
        self._certain: tuple[bytes, ...] = ()

    @property
    def values(self) -> frozenset[str]:
        """The certain ones, for a process elsewhere that is to know them too."""
        return self._values

    @property
    def guesses(self) -> frozenset[str]:
        """The others, for the same."""
        return self._guesses - self._values

    def add(self, *values: str, shortest: int = SHORTEST) -> None:
        """Keys and passwords; plain words, numbers, and what is too short to be told from those, are left."""
        self._add(_distinct(values, shortest), frozenset())

    def guess(self, *values: str, shortest: int = SHORTEST) -> None:
        """As `add`, for values that may be something else: they are redacted in texts for people only."""
        self._add(frozenset(), _distinct(values, shortest))

    def _add(self, certain: frozenset[str], guessed: frozenset[str]) -> None:
        with self._lock:
            if certain <= self._values and guessed <= self._guesses:
                return
            self._values |= certain
            self._guesses |= guessed
            self._texts = _longest_first(self._values | self._guesses)
            self._bytes = _encoded(self._texts)
            self._certain = _encoded(_longest_first(self._values))

    def guess_variables(self, variables: Mapping[str, str]) -> None:
        """Variables that happen to be set: `CACHE_KEY` may hold anything; passwords in addresses are certain."""
        self.guess(*_named_like_keys(variables))
        for value in variables.values():
            self.learn_address(value)

    def learn_given(self, variables: Mapping[str, str]) -> None:
        """Variables that somebody hands to an agent: also what only looks like a key."""
        looks = (value for value in variables.values() if _TOKEN.search(value) and not _is_path(value))
        self.add(*_named_like_keys(variables), *looks)
        for value in variables.values():
            self.learn_address(value)

    def learn_arguments(self, arguments: Iterable[str]) -> None:
        """What stands behind the name of a secret in a command, a header or an address, and what looks like a key."""
        for text in arguments:
            named = (value for value in _NAMED_ARGUMENT.findall(text) if not _is_path(value))
            # Models and tasks have names with hyphens too.
            keys = (value for value in LIKE_A_KEY.findall(text) if _TOKEN.search(value))
            self.add(*named, *_BEARER.findall(text), *keys)
            self.learn_address(text)

    def learn_address(self, text: str) -> None:
        """The login in an address, and its password alone."""
        for login in _IN_AN_ADDRESS.findall(text):
            password = login.partition(":")[2]
            self.add(login, password, unquote(login), unquote(password), shortest=SHORTEST_PASSWORD)

    def learn_fields(self, value: object) -> None:
        """Texts in a JSON value whose name is that of a secret."""
        self.add(*_secret_fields(value))

    def redact(self, text: str) -> str:
        for form in self._texts:
            text = text.replace(form, HIDDEN)
        return text

    def redact_bytes(self, content: bytes) -> bytes:
        for form in self._bytes:
            content = content.replace(form, HIDDEN.encode())
        return content

    def redact_data(self, content: bytes) -> bytes:
        """For what is read back as data: without the values that are secret for certain."""
        for form in self._certain:
            content = content.replace(form, HIDDEN.encode())
        return content

    def redacting_stream(self, stream: TextIO) -> TextIO:
        """The same stream, for text that is masked on its way."""
        # Also where nothing is learned yet: what is written later may hold what is learned by then.
        return cast(TextIO, _MaskedStream(stream, self))


MASKER = SecretMasker()
"""What this process knows."""


class _MaskedStream:
    """A stream for text that is masked on its way. What stands for one need have no more than `write` and `flush`."""

    def __init__(self, stream: TextIO, known: SecretMasker) -> None:
        if isinstance(stream, io.TextIOWrapper):
            # What cannot be written to this terminal must not end what was measured.
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
        self._stream, self._known = stream, known

    def write(self, text: str) -> int:
        with self._though_unread():
            self._stream.write(self._known.redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        with self._though_unread():
            self._stream.flush()

    def isatty(self) -> bool:
        return bool(getattr(self._stream, "isatty", bool)())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _though_unread(self) -> Iterator[None]:
        """Once the reader has gone (`| head -1`, a closed terminal), write to nowhere: what is left to do must be done
        all the same."""
        try:
            yield
        except OSError as error:
            if error.errno not in READER_GONE or not isinstance(self._stream, io.TextIOWrapper):
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()


def _distinct(values: Iterable[str], shortest: int) -> frozenset[str]:
    found = {value.strip() for value in values}
    return frozenset(value for value in found if len(value) >= shortest and not _PLAIN.fullmatch(value))


def _named_like_keys(variables: Mapping[str, str]) -> Iterator[str]:
    return (value for name, value in variables.items() if value and _NAME.search(name) and not _is_path(value))


def _longest_first(values: frozenset[str]) -> tuple[str, ...]:
    """All forms of these; a longer one may hold a shorter one."""
    forms = {form for value in values for form in _forms(value)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _encoded(texts: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(text.encode("utf-8", "surrogateescape") for text in texts)


def _forms(value: str) -> Iterator[str]:
    """As it is, and as it looks in JSON, in Python, in an address, in base64."""
    for text in (value, repr(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield from accumulate(range(DEPTH), lambda inner, _: json.dumps(inner)[1:-1], initial=text)
    content = value.encode("utf-8", "surrogateescape")
    for quoted in (quote(content, safe=""), quote(content), quote_plus(content)):
        yield from (quoted, re.sub("%..", lambda found: found[0].lower(), quoted))
    yield from _in_base64(content)


def _in_base64(content: bytes) -> Iterator[str]:
    """What is the same whatever stands before and after it, as a user's name does in `Authorization: Basic`."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + content).decode()
        # Without the characters that depend on what is before, and those that depend on what follows.
        over = (before + len(content)) % 3
        core = text[(0, 2, 3)[before] : len(text) - (4 - over if over else 0)]
        yield from (core, core.translate(_URL_SAFE))


def _secret_fields(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        # As a header has it: `Bearer …`.
        yield from (value, *value.split()[1:]) if _NAME.search(name) else ()
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _secret_fields(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _secret_fields(each, name)


def _is_path(value: str) -> bool:
    """Something that lies where it says, or could: base64 may begin with a slash too."""
    if value[0] not in "/~.":
        return os.path.exists(value)
    folder = os.path.dirname(os.path.expanduser(value))
    return os.path.isdir(folder) if folder != "/" else os.path.exists(value)
