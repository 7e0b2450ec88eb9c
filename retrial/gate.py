"""`--fail-under` and `--baseline`: whether a result is good enough for whoever asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrial.config import ReportOptions


def judge(options: ReportOptions, content: Mapping[str, Any]) -> int:
    """The exit code of what was missed; 0 when nothing was."""
    return 0
