"""Odd and hostile patches of one small tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retrial.patches import Change, patched, select

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


def section(old: str, new: str, *lines: str) -> str:
    return "\n".join([f"diff --git a/{old} b/{new}", *lines]) + "\n"


PLAIN = sample("ok_plain")
