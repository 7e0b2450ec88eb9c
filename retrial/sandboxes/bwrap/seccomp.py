"""Calls of the kernel that namespaces do not keep apart, so that no job may make them.

Keys: a process is born with the session's keyring of whoever started it, and may read what is in it. Sockets to the
machine's own host (vsock): they belong to no network namespace; and rings (io_uring), which make sockets without a call
that could be looked at. An engine has a filter of its own for its containers.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass

VSOCK = 40
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, KIND, FIRST_ARGUMENT = 0, 4, 16
"""Where they are in what the kernel shows a filter."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
OTHER_NUMBERS = 0x40000000
"""From here on x86 has the same calls once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    kind: int
    """As the kernel's audit names it. A program of another kind (32 bits) has other numbers, and is refused all."""
    never: tuple[int, ...]
    """For keys and rings."""
    socket: int


MACHINES = {
    "x86_64": Architecture(kind=0xC000003E, never=(248, 249, 250, 425), socket=41),
    "aarch64": Architecture(kind=0xC00000B7, never=(217, 218, 219, 425), socket=198),
}


def refused() -> bytes:
    """A filter as bwrap takes it; empty where the numbers of calls are not known."""
    machine = MACHINES.get(platform.machine())
    return b"".join(struct.pack("=HBBI", *each) for each in _program(machine)) if machine else b""


def _program(machine: Architecture) -> Iterator[tuple[int, int, int, int]]:
    """(What to do, instructions to skip if so, and if not, with which number)."""
    never = len(machine.never)
    yield LOAD, 0, 0, KIND
    yield IF_EQUAL, 0, never + 6, machine.kind
    yield LOAD, 0, 0, NUMBER
    yield IF_AT_LEAST, never + 4, 0, OTHER_NUMBERS
    for left, number in zip(range(never, 0, -1), machine.never, strict=True):
        yield IF_EQUAL, left + 3, 0, number
    yield IF_EQUAL, 0, 2, machine.socket
    yield LOAD, 0, 0, FIRST_ARGUMENT
    yield IF_EQUAL, 1, 0, VSOCK
    yield RETURN, 0, 0, ALLOW
    yield RETURN, 0, 0, REFUSE
