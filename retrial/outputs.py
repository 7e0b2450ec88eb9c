"""What is made of results.json for people and for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrial.config import ReportOptions
from retrial.store import Run


def write(options: ReportOptions, run: Run, content: Mapping[str, Any]) -> None:
    """The page beside it, and every file that was asked for; says where they are."""
