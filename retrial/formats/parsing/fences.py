"""Fenced code blocks, as models write Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

FENCE = re.compile(r"^(\s*+)(`{3,}+|~{3,}+)([^`]*+)$")
"""Indentation, fence, and what stands behind it."""


def fence_around(content: str) -> str:
    """A fence that is longer than any in the content."""
    runs = re.findall(r"^[ \t]*(`+)", content, re.MULTILINE)
    return "`" * max(3, 1 + max((len(run) for run in runs), default=0))


def dedented(lines: Sequence[str], indentation: str) -> list[str]:
    """Without the indentation that the fence or marker above has, if every line has it."""
    if all(line.startswith(indentation) for line in lines if line.strip()):
        return [line.removeprefix(indentation) for line in lines]
    return list(lines)
