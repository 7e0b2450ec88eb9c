"""results.json as a page: one file that needs no server and no network, and tells nothing that is not in it."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from retrial.reports.comparison_table import Comparison
from retrial.reports.page import figures, instance
from retrial.reports.page.instance import visible
from retrial.reports.records import GroupResults, Results
from retrial.reports.terminal import passed_tests, tests_cell
from retrial.store import transcript
from retrial.store.json_io import to_exact_jsonl
from retrial.store.runs import FROM_CACHE, Run
from retrial.system.secrets import MASKER

HERE = Path(__file__).parent
_KEPT = re.compile(r"^([0-9a-f]{24}) ([A-Za-z0-9+/=]+)$", re.MULTILINE)
"""A line of the packed pieces: key and content."""


def write(run: Run, results: Results) -> Path | None:
    """`report.html`, beside results.json."""
    return run.write_beside("report.html", render(run, results).encode("utf-8", "replace"))


def render(run: Run, results: Results) -> str:
    return _page(
        "report.html.j2",
        # The instances are in the details, and would be most of it.
        replace(results, instances=[]),
        details=list(_packed_details(run, results)),
        instances=results.instances,
        left_out=figures.left_out(results),
        filters=figures.filters(results),
        charts=figures.of_run(results),
    )


def write_comparison(run: Run, results: Comparison | GroupResults) -> Path | None:
    """`compare.html`: of runs side by side, of a grid, of repeats."""

    def has_page(name: str) -> bool:
        return (run.folder.parent / name / "report.html").is_file()

    found = _page("compare.html.j2", results, charts=figures.of_several(results), has_page=has_page)
    return run.write_beside("compare.html", found.encode("utf-8", "replace"))


def _page(template: str, results: object, **values: Any) -> str:
    """Templates read results.json as it is in the file: what they show says where it is there."""
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
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"passed_tests": passed_tests, "tests_cell": tests_cell}
    made.filters |= {"shown": shown, "shorten": figures.shorten, "by_reason": figures.by_reason}
    made.filters["words"] = lambda text: str(text).replace("_", " ")
    return made


def _packed_details(run: Run, results: Results) -> Iterator[tuple[str, str]]:
    """Of each instance: the key of what it is made from, and the piece of HTML, packed.

    What the page before had of the same content is taken from there.
    """
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


def finalize(value: object) -> object:
    """Of everything that a template prints."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _usd(value: Any) -> str:
    return f"{value:,.{2 if value >= 10 else 4}f} USD"


def _seconds(value: Any) -> str:
    if value < 120:
        return f"{value:.1f} s"
    minutes, hours = value / 60, value / 3600
    return f"{minutes:.1f} min" if minutes < 120 else f"{hours:.1f} h"


WAYS: Mapping[str, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,}",
    # Of a list.
    "size": lambda value: f"{len(value):,}",
    "number": _number,
    "percent": lambda value: f"{value:.1f} %",
    "usd": _usd,
    # In a column that says so.
    "dollars": lambda value: _usd(value).removesuffix(" USD"),
    # USD for one of something; there may be none.
    "each": _usd,
    "seconds": _seconds,
    "points": lambda value: f"{value:+.1f}",
    "chance": lambda value: f"= {value:.2g}" if value >= 0.0001 else "< 0.0001",
}
UNKNOWN = {"usd": "unknown"}
"""What stands for null; for other ways a dash."""


def shown(value: Any, way: str) -> str:
    return UNKNOWN.get(way, "–") if value is None else WAYS[way](value)


class Numbers:
    """Of one results.json; `data-from` is a JSON pointer into it."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __call__(self, way: str, *path: str | int) -> Markup:
        """`n("percent", "rate", "percent")`; what is not there is an error of the template's."""
        where = "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
        return Markup('<span class="n" data-way="{}" data-from="{}">{}</span>').format(
            way, where, shown(self.value(*path), way)
        )

    def value(self, *path: str | int) -> Any:
        found: Any = self._content
        for step in path:
            found = found[step]
        return found
