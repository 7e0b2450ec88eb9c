"""The columns of a SWE-bench row: which ones are taken, and what each must be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial.benchmarks.swebench.official_grader import END, START
from retrial.store.runs import SAFE

SHOWN = ("instance_id", "repo", "base_commit", "problem_statement", "image", "log_parser", "eval_type")
"""Every row must have them, and an agent may know them."""
COLUMNS = (*SHOWN, "version", "eval_script", "patch", "test_patch", "FAIL_TO_PASS", "PASS_TO_PASS", "image_assets")
"""All that is ever taken. `hints_text` is not among them: what nobody has cannot reach an agent."""


_RULES = {
    "instance_id": (re.compile(rf"(?=.{{1,120}}$){SAFE.pattern}"), "a file name of letters, digits and _.+@-"),
    "repo": (re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9_.][A-Za-z0-9_.-]*"), "owner/name"),
    "base_commit": (re.compile(r"[0-9a-f]{40}"), "the 40 hex digits of a commit"),
    "image": (re.compile(r"[A-Za-z0-9]\S*"), "the name of an image"),
    "log_parser": (re.compile(r"\w+"), "the name of a log parser"),
    "eval_type": (re.compile(r"pass_and_fail|fail_only"), "pass_and_fail or fail_only"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row as found: columns that nobody has checked, and the place that a complaint must name."""

    where: str
    columns: Mapping[str, Any]
    more: Callable[[list[str]], Mapping[str, Any]] | None = None
    """Gives the columns that are an answer, where they are read only when asked for; takes a list for complaints."""
    folder: Path | None = None
    """The task's own, in a task repository."""
    recipe: str = ""


def command_of(eval_script: str) -> str:
    """What stands between the two markers, each of them on one line only; empty when the script has another shape."""
    lines = eval_script.split("\n")
    start = [number for number, line in enumerate(lines) if START in line]
    end = [number for number, line in enumerate(lines) if END in line]
    if len(start) != 1 or len(end) != 1:
        return ""
    return "\n".join(lines[start[0] + 1 : end[0]]).strip()


@dataclass(frozen=True, slots=True)
class Columns:
    """Takes values out of a record, and notes what is wrong with them."""

    record: Record
    problems: list[str]

    def complain(self, about: str) -> None:
        self.problems.append(f"{self.record.where} {about}")

    def text(self, name: str, *, blank: bool = False) -> str:
        value = self.record.columns.get(name)
        pattern, expected = _RULES.get(name, (None, ""))
        if value is None:
            self.complain(f"lacks {name}.")
        elif not isinstance(value, str) or not _encodable(value):
            self.complain(f"must give {name} as a text.")
        elif not value.strip() and not blank:
            self.complain(f"has an empty {name}.")
        elif pattern and not pattern.fullmatch(value):
            self.complain(f"has {name} {value[:80]!r}, which must be {expected}.")
        return str(value)

    def version(self) -> str:
        """Said for people only; a number where somebody did not quote it."""
        return str(self.record.columns.get("version", "")).encode(errors="replace").decode()

    def script(self) -> str:
        script = self.text("eval_script")
        if self.record.columns.get("eval_script") and not command_of(script):
            self.complain(f"has an eval_script without a test command between one '{START}' and one '{END}'.")
        return script

    def tests(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those that must begin to pass, and those that must go on passing."""
        before = len(self.problems)
        both = self.texts("FAIL_TO_PASS"), self.texts("PASS_TO_PASS")
        if not any(both) and len(self.problems) == before:
            # Anything at all would resolve it.
            self.complain("names no test, in neither FAIL_TO_PASS nor PASS_TO_PASS.")
        return both

    def texts(self, name: str) -> tuple[str, ...]:
        """A list, or the JSON text of one, as older copies have it."""
        value = self.parsed(name)
        if value is None:
            self.complain(f"lacks {name}.")
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.complain(f"must give {name} as a list of texts.")
        elif not _encodable("".join(value)):
            self.complain(f"has in {name} a text that no file can hold.")
        else:
            return tuple(value)
        return ()

    def assets(self) -> tuple[str, ...]:
        """Paths of files that patches cannot carry: of the tests, then of the gold patch. Multimodal rows have some."""
        value = self.parsed("image_assets") or {}
        lists = [value.get(name) or [] for name in ("test_patch", "patch")] if isinstance(value, dict) else [None]
        if not all(isinstance(items, list) and all(isinstance(item, dict) for item in items) for items in lists):
            self.complain("has image_assets that are not lists of path and url.")
            return ()
        return tuple(str(item["path"]) for items in lists for item in items or () if item.get("path"))

    def parsed(self, name: str) -> Any:
        value = self.record.columns.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            return value


def _encodable(text: str) -> bool:
    """JSON can spell halves of characters, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
