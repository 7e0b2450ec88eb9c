"""Where answers, edits of other agents and verdicts lie on this machine: what neither an agent nor its code may see."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from retrial.system import paths


def places(benchmark: str) -> tuple[Path, ...]:
    """Some need not be there. A benchmark counts if it is a folder."""
    home = paths.home()
    ours = (paths.cache(), home / "predictions", home / "logs", paths.PROJECT / "tasks", paths.PROJECT / ".git")
    found = (*ours, *_data_sets(), *((Path(benchmark),) if os.path.exists(benchmark) else ()))
    return tuple(Path(os.path.abspath(path)) for path in found)


def below(shown: Iterable[Path], places: Iterable[Path]) -> tuple[Path, ...]:
    """Those of the places that are in view with these, by their paths there."""
    secrets = {Path(os.path.realpath(place)) for place in places if place.exists()}
    roots = [(path, Path(os.path.realpath(path))) for path in shown]
    found = {path / secret.relative_to(real) for path, real in roots for secret in secrets if real in secret.parents}
    return tuple(sorted(found))


def _data_sets() -> tuple[Path, ...]:
    """Where the package `datasets` keeps what it has loaded, answers and all; models may lie beside it."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("HF_HOME") or user / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets"), *hub.glob("datasets--*")
