"""Results for other programs: one file for each form, which defines `make`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from retrial.store.runs import Run

Export = Callable[[Run, Mapping[str, Any]], bytes | None]
"""Takes a run and the content of its results.json; None: this run has nothing to export in that form."""
