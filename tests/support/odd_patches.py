"""Odd and hostile patches of one small tree."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path

from retrial.patches.apply import patched
from retrial.patches.git import quote
from retrial.patches.parser import Change
from retrial.patches.policy import select
from retrial.types import Environment, Task
from tests.support.repository_task import MemoryTree

DATA = Path(__file__).parent / "data" / "patches"
STUB = b"def add(a, b):\n    raise NotImplementedError\n"
DONE = b"def add(a, b):\n    return a + b\n"
BASE = {"add.py": STUB, "add_test.py": b"import unittest\n", "notes.txt": b"one\ntwo\n"}


def sample(name: str) -> str:
    return (DATA / f"{name}.diff").read_bytes().decode("utf-8", "surrogateescape")


def everything(change: Change) -> bool:
    return True


def after(patch: str, files: Mapping[str, bytes] = BASE) -> dict[str, bytes]:
    """What is left of a patch that went the whole way, as in a check."""
    return patched(files, select(patch, everything).patch).files


def exercise(files: Mapping[str, bytes] = BASE) -> Task:
    return Task(
        instance_id="demo/add",
        benchmark="demo",
        language="python",
        problem_statement="Add.",
        tree=MemoryTree(content=files),
        environment=Environment(name="python", image="python", language="python"),
        editable=("add.py", "src/deep.py"),
        new_file_globs=("*.py",),
        protected_globs=("*_test.py", "conftest.py"),
        read_only=("notes.txt",),
    )


def section(old: str, new: str, *lines: str) -> str:
    return "\n".join([f"diff --git a/{old} b/{new}", *lines]) + "\n"


def added(path: str, mode: str = "100644", content: str = "x") -> str:
    """A new file of one line."""
    old, new = quote(f"a/{path}"), quote(f"b/{path}")
    lines = [f"diff --git {old} {new}", f"new file mode {mode}", "--- /dev/null", f"+++ {new}"]
    return "\n".join([*lines, "@@ -0,0 +1 @@", f"+{content}"]) + "\n"


def binary(path: str, kind: str, size: int, content: bytes) -> str:
    """A new file of binary data that says it has so many bytes."""
    packed = zlib.compress(content, 9)
    chunks = [packed[at : at + 52] for at in range(0, len(packed), 52)]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    lines = [letters[len(chunk) - 1] + base64.b85encode(chunk, pad=True).decode() for chunk in chunks]
    index = f"index {'0' * 40}..{'1' * 40}"
    return section(path, path, "new file mode 100644", index, "GIT binary patch", f"{kind} {size}", *lines, "")


PLAIN = sample("ok_plain")
