"""Colours for outcomes, on a terminal only: what goes to a file or a pipe is plain."""

from __future__ import annotations

import os
import re
import sys

from retrial.types import Outcome

GREEN, RED, YELLOW, BOLD, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[1m", "\033[0m"
_FAMILIES = {"resolved": GREEN, "unresolved": RED, "not measured": YELLOW}
_OUTCOMES = {str(each): _FAMILIES[each.family] for each in Outcome}
_CELL = re.compile(rf"(?<=  )({'|'.join(_OUTCOMES)})(?=  |$)", re.MULTILINE)
_RATE = re.compile(r"^rate  .*$", re.MULTILINE)


def wanted() -> bool:
    """As https://no-color.org asks."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str) -> str:
    """Cells of tables that hold an outcome, and the headline."""
    if not wanted():
        return text
    text = _CELL.sub(lambda found: f"{_OUTCOMES[found[1]]}{found[1]}{PLAIN}", text)
    return _RATE.sub(lambda found: f"{BOLD}{found[0]}{PLAIN}", text)
