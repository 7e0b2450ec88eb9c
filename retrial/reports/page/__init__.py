"""results.json as a page: one file that needs no server and no network, and tells nothing that is not in it."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrial.reports.comparison_table import Comparison
from retrial.reports.records import GroupResults, Results
from retrial.store import transcript
from retrial.store.json_io import to_exact_jsonl
from retrial.store.runs import FROM_CACHE, Run
from retrial.system.secrets import MASKER

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
_KEPT = re.compile(r"^([0-9a-f]{24}) ([A-Za-z0-9+/=]+)$", re.MULTILINE)
"""A line of the packed pieces: key and content."""


def write(run: Run, results: Results) -> Path | None:
    """`report.html`, beside results.json."""
    return run.write_beside("report.html", render(run, results).encode("utf-8", "replace"))


def render(run: Run, results: Results) -> str:
    from retrial.reports.page import run as run_page

    details = list(_packed_details(run, results))
    # The instances are in the details, and would be most of it.
    return _page("report.html.j2", replace(results, instances=[]), details=details, p=run_page.build(results))


def write_comparison(run: Run, results: Comparison | GroupResults) -> Path | None:
    """`compare.html`: of runs side by side, of a grid, of repeats."""
    from retrial.reports.page import comparison

    found = comparison.build(results, run.folder.parent)
    return run.write_beside("compare.html", _page("compare.html.j2", results, p=found).encode("utf-8", "replace"))


def _page(template: str, results: object, **values: Any) -> str:
    """Templates read results.json as it is in the file: what they show says where it is there."""
    from markupsafe import Markup

    from retrial.reports.page.text import Numbers

    content, found = json.loads(to_exact_jsonl(results)), environment().get_template(template)
    script = (HERE / "page.js").read_text(encoding="utf-8")
    return found.render(
        c=content,
        n=Numbers(content),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        # Whatever else might come to stand in the page, nothing but this script runs.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **values,
    )


@functools.cache
def environment() -> Environment:
    import jinja2

    from retrial.reports.page.text import finalize, shown

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    made.filters["words"] = lambda text: str(text).replace("_", " ")
    return made


def _packed_details(run: Run, results: Results) -> Iterator[tuple[str, str]]:
    """Of each instance: the key of what it is made from, and the piece of HTML, packed.

    What the page before had of the same content is taken from there.
    """
    from retrial.reports.page import instance

    before = dict(_KEPT.findall(run.beside("report.html")))
    template = environment().get_template("details.html.j2")
    most, version = instance.room(len(results.instances)), _version()
    patches = run.patches()
    for row in results.instances:
        instance_id = row.instance_id
        material = instance.Material(
            row=row,
            # Masked once more: packed, nobody could; and not every key was known when these were written.
            patch=MASKER.redact(patches.get(instance_id, "")),
            transcript=instance.chat_source(run, instance_id),
            # Where it was known before, all else is the same.
            log=MASKER.redact(run.log(instance_id, row.model_name_or_path).replace(FROM_CACHE, "", 1)),
        )
        key = material.key(most, version)
        if key not in before:
            attempts = instance.read_attempts(run, instance_id)
            before[key] = _packed(instance.render(template, material, attempts, most))
        yield key, before[key]


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()


@functools.cache
def _version() -> str:
    """Of this folder and of transcripts: another template makes another page."""
    found = hashlib.sha256()
    for path in (*sorted(HERE.iterdir()), Path(transcript.__file__)):
        if path.suffix in (".py", ".j2"):
            found.update(path.read_bytes())
    return found.hexdigest()
