"""Makes a job a real nobody when Retrial itself runs as root.

A user namespace of one's own does not make root harmless: its one user stays the host's user 0 for every file that the
sandbox shows, and that user may write `/proc/sys` and change the mode of `/dev/null`, capabilities or not (seen). So
the namespace gets a second user: bwrap lays out the sandbox as the first, and the job becomes the second.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path

from retrial.errors import SandboxError

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
