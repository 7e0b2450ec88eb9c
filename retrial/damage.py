"""Files that are not what was written: named, set aside under another name, and made anew."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from retrial.errors import UsageError
from retrial.progress import say

SHOWN = 20
"""Problems listed at most."""
PREDICTION_FIELDS = ("instance_id", "model_name_or_path", "model_patch", "try", "all_results")
_LOG = logging.getLogger(__name__)


def free_name(path: Path) -> Path:
    """For what was at this path; nothing has it."""
    names = (path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


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


def no_prediction(path: Path, record: Any) -> str:
    """Why what this file holds cannot be the prediction of the task that it is named after; empty when it can."""
    if not isinstance(record, dict) or record.get("instance_id") != path.stem:
        return f"{path} is not a prediction: its instance_id must be '{path.stem}'."
    missing = [name for name in PREDICTION_FIELDS if name not in record]
    if missing or not record["all_results"]:
        return f"{path} is not a whole prediction: {(missing or ['all_results'])[0]} is missing."
    attempts = record["all_results"]
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        return f"{path} is not a prediction: its all_results must be a list of objects."
    if not isinstance(record["model_patch"], str | None):
        return f"{path} is not a prediction: its model_patch must be a text."
    return ""
