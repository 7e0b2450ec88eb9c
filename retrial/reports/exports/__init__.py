"""Results for other programs: one file for each form, which defines `make`. Here is what they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from retrial.reports.records import InstanceRow, Results
from retrial.reports.terminal import tokens
from retrial.store.runs import Run
from retrial.system.console import first_few, money, percent, pluralise, printable

if TYPE_CHECKING:
    from jinja2 import Template

Export = Callable[[Run, Results], bytes | None]
"""Takes a run and its results; None: this run has nothing to export in that form."""
SHOWN = 200
"""Characters of a reason."""
NAMED = 100
"""Characters of a name."""
CUT = "…"
LOOKED_AT = 8
"""Times as many characters as are shown: some are nothing but colour and space."""

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class CaseKind(StrEnum):
    """What a result says of a task, each in one place only."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    VOID = "void"
    """Measured, and worth nothing: its reference fails here, or its stub passes."""
    NOT_MEASURED = "not measured"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCase:
    instance_id: str
    kind: CaseKind
    outcome: str
    reason: str
    row: InstanceRow | None = None
    """None where nothing was scored."""


def every(results: Results) -> list[ExportedCase]:
    """By id."""
    found = [
        *(_unscored(key, CaseKind.NOT_MEASURED, why) for key, why in results.not_measured.items()),
        *map(_scored, results.instances),
        *(_unscored(key, CaseKind.SKIPPED, why) for key, why in results.skipped.items()),
    ]
    # Of what was not measured, a row knows more.
    return [each for _, each in sorted({each.instance_id: each for each in found}.items())]


def _unscored(instance_id: str, kind: CaseKind, why: str) -> ExportedCase:
    return ExportedCase(instance_id=instance_id, kind=kind, outcome=kind.replace(" ", "_"), reason=why)


def _scored(row: InstanceRow) -> ExportedCase:
    if not row.outcome.measured:
        kind = CaseKind.NOT_MEASURED
    elif row.void:
        kind = CaseKind.VOID
    else:
        kind = CaseKind.RESOLVED if row.resolved else CaseKind.UNRESOLVED
    reason = row.void if kind is CaseKind.VOID else row.reason
    return ExportedCase(instance_id=row.instance_id, kind=kind, outcome=str(row.outcome), reason=reason, row=row)


def model_names(results: Results) -> list[str]:
    """As the predictions have them."""
    return sorted({row.model_name_or_path for row in results.instances})


def made_elsewhere(results: Results) -> bool:
    """Predictions of which only the patches are known."""
    return "file" in results.provenance or "kind" in results.provenance


def line(text: object, most: int = SHOWN) -> str:
    """Text from outside, in one line, with nothing that a terminal would obey, and no longer than that."""
    whole = str(text)
    # A reason may have millions.
    found = printable(ANSI.sub("", whole[: most * LOOKED_AT]))
    return found if len(found) <= most and len(whole) <= most * LOOKED_AT else found[: most - 1] + CUT


def code(text: object, most: int = SHOWN) -> str:
    """As a code span of Markdown, in a table too: there nothing is a link, a tag, a mention or a number of an issue.

    What could end it is replaced by what looks like it: how a backslash stands to a pipe, readers do not agree on.
    """
    found = line(text, most).replace("`", "'").replace("|", "¦")
    return f"`{found}`" if found else "–"


def entry(remarks: Iterable[str], content: object, longest: int) -> bytes:
    """As YAML, a list of one, below comments."""
    import yaml

    text = yaml.safe_dump([content], sort_keys=False, allow_unicode=True, width=longest)
    return ("".join(f"# {remark}\n" for remark in remarks) + text).encode()


def template(name: str) -> Template:
    """One of Markdown, beside this file."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        # Markdown: what others wrote is put into code spans.
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"NAMED": NAMED, "SHOWN": SHOWN}
    for way in (code, first_few, money, percent, pluralise, tokens):
        made.filters[way.__name__] = way
    return made.get_template(name)
