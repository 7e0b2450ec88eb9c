"""What a job in a bubble may not do: act as the host's root, or make calls that namespaces do not keep apart.

A user namespace of one's own does not make root harmless: its one user stays the host's user 0 for every file that the
sandbox shows, and that user may write `/proc/sys` and change the mode of `/dev/null`, capabilities or not (seen). So
the namespace gets a second user: bwrap lays out the sandbox as the first, and the job becomes the second.

Refused calls: keys (a process inherits its parent's session keyring and may read it),
sockets to the machine's own host (vsock: they belong to no network namespace), and rings (io_uring), which make sockets
without a call that could be looked at. An engine has a filter of its own for its containers.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from retrial.errors import SandboxError

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


ID = 65534
WATCHERS, WATCHED = 12, 16_384
# Inside, still as the first user: no further user namespaces (what --disable-userns does), then become the second.
# What watches files is counted for the first user too, who is root: one job could take all that root has.
BECOME = f"""\
echo 0 >/proc/sys/user/max_user_namespaces || exit 125
for kind in inotify fanotify; do
    for most in instances={WATCHERS} groups={WATCHERS} watches={WATCHED} marks={WATCHED}; do
        file=/proc/sys/user/max_${{kind}}_${{most%=*}}
        [ ! -e $file ] || echo ${{most#*=}} >$file
    done
done
exec setpriv --reuid {ID} --regid {ID} --clear-groups --inh-caps=-all -- "$@"
"""


class Nobody:
    """The handshake with one bwrap in which we, who may, say which users its namespace has."""

    command = ("sh", "-c", BECOME, "sh")

    def __init__(self, stack: ExitStack) -> None:
        if not shutil.which("setpriv"):
            raise SandboxError("A sandbox for root needs 'setpriv': install the package 'util-linux'.")
        self._ready_there, self._ready = pipe(stack)
        self.descriptor = self._ready_there.fileno()
        # bwrap itself waits for the first. Only for the second does its child close the descriptor, too: else the job
        # would inherit it.
        self.options = ["--userns-block-fd", str(self.descriptor), "--block-fd", str(self.descriptor)]
        for name in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_RESOURCE"):
            self.options += ["--cap-add", name]

    def introduce(self, child: int) -> None:
        """Tell bwrap's child who it may be; if anything goes wrong it will end, and its own words say why."""
        with suppress(OSError):
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(f"0 0 1\n{ID} {ID} 1\n")
            self._ready.write(b"\n")


def pipe(stack: ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return stack.enter_context(FileIO(read, "r")), stack.enter_context(FileIO(write, "w"))


def first_process(info: FileIO) -> int:
    """Return the pid outside of a bubble's first process, as bwrap tells it; 0 when bwrap ended before it had one."""
    text = b""
    while not text.rstrip().endswith(b"}") and (data := info.read(4096)):
        text += data
    return int(json.loads(text)["child-pid"]) if text else 0


def seccomp_filter() -> bytes:
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
