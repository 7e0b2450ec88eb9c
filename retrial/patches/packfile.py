"""Git pack files, written without starting a process for each object."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from retrial.errors import NotMeasured

_KINDS = {"commit": 1, "tree": 2, "blob": 3}
Entry: TypeAlias = "tuple[str, bytes] | dict[bytes, Entry]"


def add_tree(pack: Pack, tree: Mapping[bytes, Entry]) -> bytes:
    lines: dict[bytes, bytes] = {}
    for name, entry in tree.items():
        if isinstance(entry, dict):
            # Git sorts a folder as if its name ended in a slash.
            lines[name + b"/"] = b"40000 %s\0%s" % (name, add_tree(pack, entry))
        else:
            mode, content = entry
            lines[name] = b"%s %s\0%s" % (mode.encode(), name, pack.add("blob", content))
    return pack.add("tree", b"".join(lines[key] for key in sorted(lines)))


class Pack:
    """Objects in one file, and the index that git finds them by: thousands of files of their own take seconds.

    They are not compressed, as no repository of ours lives longer than an attempt. `git fast-import` would do the same
    in five times the time, and needs a process, which for a small task is most of the work.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 12
        self._found: dict[bytes, tuple[int, int]] = {}
        """Object id → checksum and place."""

    def add(self, kind: str, content: bytes) -> bytes:
        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        name = hashlib.sha1(whole, usedforsecurity=False).digest()
        if name not in self._found:
            chunk = _pack_header(_KINDS[kind], len(content)) + zlib.compress(content, 0)
            self._found[name] = zlib.crc32(chunk), self._size
            self._chunks.append(chunk)
            self._size += len(chunk)
            if self._size >> 31:
                raise NotMeasured("The files are more than 2 GiB, which is more than one commit of ours can hold.")
        return name

    def write(self, folder: Path) -> None:
        body = b"".join((b"PACK", struct.pack(">II", 2, len(self._found)), *self._chunks))
        digest = hashlib.sha1(body, usedforsecurity=False)
        path = folder / f"pack-{digest.hexdigest()}.pack"
        path.write_bytes(body + digest.digest())
        path.with_suffix(".idx").write_bytes(self._index(digest.digest()))

    def _index(self, pack_digest: bytes) -> bytes:
        names = sorted(self._found)
        up_to = Counter(name[0] for name in names)
        fan = accumulate(up_to[first] for first in range(256))
        checksums, places = zip(*(self._found[name] for name in names), strict=True)
        tables = [struct.pack(f">{len(table)}I", *table) for table in (tuple(fan), checksums, places)]
        body = b"".join((b"\xfftOc\0\0\0\2", tables[0], *names, *tables[1:], pack_digest))
        return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _pack_header(kind: int, size: int) -> bytes:
    """Kind and size, seven bits a byte (four in the first), the lowest first."""
    byte, size = kind << 4 | size & 15, size >> 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)
