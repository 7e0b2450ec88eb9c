"""Bodies of a provider's responses, within limits: of bytes while they are read, of depth and values before they are
parsed. A number that is not finite or has too many digits is read as NaN, which no check of a range lets pass."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

REPLY_BYTES = 4 << 20
"""Decompressed. A reply of 128,000 tokens, every character escaped, has half of it."""
ERROR_BYTES = 1 << 20
"""Of a response with any other status than 200."""
DEPTH = 64
VALUES = 200_000
"""In one body: some bytes of JSON can take fifty times as much memory when they are parsed."""
DIGITS = 18
"""Of an integer; a longer one may also exceed what Python converts."""
REDIRECTS = 3

_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[][{},]', re.DOTALL)
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}


class OverLimit(Exception):
    """A body breaks a limit; says which."""


class Redirected(Exception):
    """The provider redirects to another host; says where."""


def limit(response: httpx2.Response) -> None:
    """Bound what can be read of a response, before any of it is; a hook of the HTTP client.

    Raises: Redirected.
    """
    import httpx2

    if response.has_redirect_location and not _same_host(response):
        raise Redirected(response.headers["location"])
    encoded = {"content-encoding": response.headers.pop("content-encoding", "identity")}
    # Decoded piece by piece by a response of its own, so that the limit counts decompressed bytes.
    decoding = httpx2.Response(200, headers=encoded, stream=response.stream, request=response.request)
    most = REPLY_BYTES if response.status_code == 200 else ERROR_BYTES
    # The charset that the provider names may be any codec of Python's, such as a decompressor.
    response.encoding = "utf-8"
    response.stream = _limited_stream(decoding, most)


def _same_host(response: httpx2.Response) -> bool:
    """Whether a redirect leads to the same origin, or to the same host by https."""
    import httpx2

    try:
        here, there = response.url, response.url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        return False
    upgrade = (here.scheme, there.scheme) == ("http", "https")
    return here.host == there.host and (upgrade or (here.scheme, here.port) == (there.scheme, there.port))


def _limited_stream(decoding: httpx2.Response, most: int) -> httpx2.SyncByteStream:
    import httpx2

    class Limited(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in decoding.iter_bytes():
                size += len(piece)
                if size > most:
                    raise OverLimit(f"more than {most >> 20} MiB")
                yield piece

        def close(self) -> None:
            decoding.close()

    return Limited()


def loads(content: bytes) -> Any:
    """Parse JSON.

    Raises: OverLimit; ValueError when it is not JSON.
    """
    text = content.decode(json.detect_encoding(content), "surrogatepass")
    _refuse_complex(text)
    return json.loads(text, parse_int=_integer, parse_float=_real, parse_constant=lambda name: math.nan)


def _refuse_complex(text: str) -> None:
    depth = 0
    for number, found in enumerate(_STRUCTURE.finditer(text), start=1):
        depth += _DEEPER.get(found[0], 0)
        if depth > DEPTH:
            raise OverLimit(f"JSON nested more than {DEPTH} deep")
        if number > VALUES:
            raise OverLimit(f"JSON with more than {VALUES:,} values")


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= DIGITS else math.nan


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else math.nan
