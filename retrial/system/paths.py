"""Where things lie on this machine, and which of them an agent may not see."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """Holds `predictions/` and `logs/`: the project's folder, unless RETRIAL_HOME says otherwise."""
    return Path(os.environ.get("RETRIAL_HOME") or PROJECT)


def cache() -> Path:
    """Holds weights, clones, verdicts and reference runs: RETRIAL_CACHE, else the user's cache folder."""
    return _cache(*map(os.environ.get, ("RETRIAL_CACHE", "XDG_CACHE_HOME", "HOME")))


@functools.cache
def _cache(given: str | None, user: str | None, home: str | None) -> Path:
    """It is asked for with every file that is written, and `Path.home` reads more than the variable."""
    return Path(given) if given else Path(user or (Path(home) if home else Path.home()) / ".cache") / "retrial"


def secret_paths(benchmark: str) -> tuple[Path, ...]:
    """Return where answers, other agents' edits and verdicts lie: neither an agent nor its code may see them.

    Some need not exist. A benchmark counts if it is a folder.
    """
    ours = (cache(), home() / "predictions", home() / "logs", PROJECT / "tasks", PROJECT / ".git")
    found = (*ours, *_dataset_caches(), *((Path(benchmark),) if os.path.exists(benchmark) else ()))
    return tuple(Path(os.path.abspath(path)) for path in found)


def secrets_below(shown: Iterable[str], places: Iterable[Path]) -> tuple[str, ...]:
    """Return those of the places that would be in view with the shown folders, by their paths there."""
    secrets = {os.path.realpath(place) for place in places if os.path.exists(place)}
    roots = [(path.rstrip("/"), os.path.realpath(path).rstrip("/")) for path in shown]
    found = {
        path + secret.removeprefix(real) for path, real in roots for secret in secrets if secret.startswith(f"{real}/")
    }
    return tuple(sorted(found))


def _dataset_caches() -> tuple[Path, ...]:
    """Where the package `datasets` keeps what it has loaded, answers and all; models may lie beside it."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("HF_HOME") or user / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets"), *hub.glob("datasets--*")
