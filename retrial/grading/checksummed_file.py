"""Cache entries: values that are used again, stored exactly as they are, each with a checksum of its own bytes.

Nothing in them is masked: a patch or an object file with `***` in it is another one. A damaged entry is named and not
used, so that it is made again.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

from retrial.store.json_io import to_exact_jsonl
from retrial.system.console import NOTE, say
from retrial.system.files import write_data

_HEAD = b'{"kept": '
_SEAL = b', "crc": "%08x"}\n'
_SEALED = re.compile(rb', "crc": "([0-9a-f]{8})"\}\n')
_SEAL_BYTES = len(_SEAL % 0)


def write(path: Path, value: object, *, sure: bool = False) -> None:
    """`sure`: on disk when this returns."""
    body = _HEAD + to_exact_jsonl(value).rstrip()
    write_data(path, body + _SEAL % zlib.crc32(body), sure=sure)


def read(path: Path) -> Any:
    """Return what was written; None where there is nothing that can be used."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    seal = _SEALED.fullmatch(content, max(0, len(content) - _SEAL_BYTES))
    if seal and zlib.crc32(memoryview(content)[:-_SEAL_BYTES]) == int(seal[1], 16):
        return json.loads(content)["kept"]
    if seal or not _of_an_older_version(content):
        say(f"{NOTE}the cache entry {path} is damaged; it is ignored and will be rebuilt")
    return None


def _of_an_older_version(content: bytes) -> bool:
    """Such entries have no checksum, and may have been masked."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return not content.startswith(_HEAD)
