"""As much of what tests printed as results.json has of it."""

from __future__ import annotations

from retrial import registry
from retrial.benchmarks.swebench import container_script
from retrial.protocols import Reader
from retrial.score.scorer import Scored
from retrial.system.secrets import KNOWN

LONGEST = 1000
"""Characters."""


def stdout(row: Scored) -> str:
    """The telling part: of a benchmark's own log, which begins with the environment's talk, that is the end."""
    log = container_script.read(row.verdict.stdout).log if row.check and row.check.required else ""
    return _without_canary(row, log)[-LONGEST:] or _without_canary(row, row.verdict.stdout)[:LONGEST]


def stderr(row: Scored) -> str:
    return _without_canary(row, row.verdict.stderr)[:LONGEST]


def _without_canary(row: Scored, text: str) -> str:
    """What is there to prove that tests can fail is not what failed; and before it is cut, what nobody may see."""
    text = KNOWN.masked(text)
    if not row.verdict.canary or row.check is None or not row.check.reader:
        return text
    reader: Reader = registry.load(row.check.reader).parser()
    for name in row.verdict.canary.split(", "):
        text = reader.without(text, name)
    return text
