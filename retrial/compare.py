"""`report.py --compare A B …`: runs side by side, and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

from retrial.config import ReportOptions


def run(options: ReportOptions, texts: Sequence[str]) -> int:
    raise NotImplementedError
