"""Files that are not what was written: named, set aside under another name, and made anew."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from retrial.errors import UsageError
from retrial.patches.git import plain_path
from retrial.store.json_io import Seal
from retrial.system.console import NOTE, say
from retrial.system.files import special_kind
from retrial.system.secrets import MASKER

SHOWN = 20
"""Problems listed at most."""
PREDICTION_FIELDS = ("instance_id", "model_name_or_path", "model_patch", "try", "all_results")
_END = b"\n}\n"
_SEAL = Seal(b",\n  ", _END)
_LOG = logging.getLogger(__name__)


def free_name(path: Path) -> Path:
    """For what was at this path; nothing has it."""
    names = (_aside(path, number) for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}")


def was_mended(path: Path) -> bool:
    """Whether what is there was made of something that is set aside."""
    return path.exists() and os.path.lexists(_aside(path, 1))


def set_aside(path: Path, why: str) -> str:
    """Under a name that nothing had before; returns what to say of it."""
    aside = free_name(path)
    path.rename(aside)
    _LOG.warning("A damaged file was set aside.", extra={"file": str(path), "aside": str(aside), "why": why})
    return f"note: {why.rstrip('.')}; it is now {aside.name}, and is made anew"


def tell(notes: Sequence[str]) -> None:
    for note in _first(notes):
        say(note)


def refuse(problems: Sequence[str], *help: str) -> UsageError:
    """All problems in one message, the first twenty by name."""
    return UsageError("\n".join((*_first(problems), *help)))


def _first(texts: Sequence[str]) -> list[str]:
    more = len(texts) - SHOWN
    return [*texts[:SHOWN], *([f"… and {more} more."] if more > 0 else [])]


def sealed(content: bytes) -> bytes:
    """An indented JSON object, with a checksum of its own bytes for its last field."""
    return _SEAL.sealed(content.removesuffix(_END))


def no_prediction(path: Path, content: bytes, record: Any) -> str:
    """Why what this file holds cannot be the prediction of the task that it is named after; empty when it can.

    Where no checksum vouches for it (older runs have none, and a hand edit may remove it), its form
    must, when it is decoded.
    """
    if _SEAL.holds(content) is False:
        return f"{path} is not as it was written: its checksum says so."
    if not isinstance(record, dict) or record.get("instance_id") != path.stem:
        return f"{path} is not a prediction: its instance_id must be '{path.stem}'."
    missing = [name for name in PREDICTION_FIELDS if name not in record]
    if missing or not record["all_results"]:
        return f"{path} is not a whole prediction: {(missing or ['all_results'])[0]} is missing."
    return ""


def refuse_links(*folders: Path) -> None:
    """Raises: UsageError naming each symlink, FIFO, socket and device in these folders, which may be links themselves:
    the user chose them."""
    if problems := [problem for folder in folders for problem in _links(folder)]:
        raise refuse(problems, "A run holds regular files only: replace each of these by the file itself.")


def _links(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        kinds = {entry.path: special_kind(entry) for entry in entries}
    return sorted(f"{plain_path(path)} is {kind}." for path, kind in kinds.items() if kind)


def tell_of_keys(path: Path, patch: bytes) -> None:
    """A patch is never changed, and a key never published, without a word."""
    if MASKER.redact_data(patch) != patch:
        say(f"{NOTE}the patch in {path} contained a key; the key was masked, and the masked patch is what is scored")
    elif MASKER.redact_bytes(patch) != patch:
        held = "the value of an environment variable that is named like a key"
        say(f"{NOTE}the patch in {path} contains {held}; it is kept as it is: check it before you publish it")
