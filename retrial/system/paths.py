"""Where things are kept on this machine."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """Holds `predictions/` and `logs/`: the project's folder, unless RETRIAL_HOME says otherwise."""
    return Path(os.environ.get("RETRIAL_HOME") or PROJECT)


def cache() -> Path:
    """Holds weights, clones, verdicts and reference runs: RETRIAL_CACHE, else the user's cache folder."""
    given = os.environ.get("RETRIAL_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retrial"
