"""The cases of `exploits/`, and the exercises they are tried on, as a benchmark that is written where it is wanted."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.patches import apply
from retrial.types import Task
from tests.support import odd_patches

EXPLOITS = Path(__file__).parent / "exploits"
CATCH = DEMO / "cpp" / "exercises" / "practice" / "ticket-price" / "test"
KINDS = ("corpus", "attack", "odd", "patch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What somebody handed in, and what is to come of it."""

    language: str
    kind: str
    """`corpus` and `attack`: must not resolve, but for a `gap`; `odd`: honest, must resolve; `patch`: to be decided."""
    name: str
    technique: str
    files: Mapping[str, str] = field(default_factory=dict)
    """Laid over the exercise; of a `patch` there is a file by its name among the odd patches."""
    exercise: str = "add"
    outcome: tuple[str, ...] = ("resolved",)
    """One of these: a fork bomb runs out of time or of memory, and who races the report may lose."""
    rule: str = ""
    """That is broken, where the outcome is `tampered`."""
    reason: str = ""
    """A part of the sentence that people get."""
    proof: str = "canary"
    """Of what resolves."""
    dropped: tuple[str, ...] = ()
    """Those of `files` that do not count."""
    timeout: float | None = None
    gap: str = ""
    """Why nothing can be done about it: `docs/trust.md` says so too."""

    @property
    def instance_id(self) -> str:
        return f"aider_{self.language}_{self.exercise.replace('-', '_')}"

    def patch(self) -> str:
        """As an agent would hand it in. Where no solution file is left of it, a wrong solution is in it as well: what
        was dropped must be seen to have no effect."""
        if self.kind == "patch":
            return odd_patches.sample(self.name)
        tables = _tables(self.language)
        exercise: Mapping[str, str] = tables["exercises"][self.exercise]
        alone = set(self.files) == set(self.dropped)
        return apply.diff(
            _encoded(_shown(exercise)),
            _encoded({**_shown(exercise), **(tables["wrong"][self.exercise] if alone else {}), **self.files}),
        )


def cases(*kinds: str) -> list[Case]:
    return [
        Case(language=language, kind=kind, **{key: _tuple(value) for key, value in row.items()})
        for language in languages()
        for kind in kinds
        for row in _tables(language).get(kind, [])
    ]


def languages() -> list[str]:
    return sorted(path.stem for path in EXPLOITS.glob("*.toml"))


def benchmark(root: Path) -> Exercism:
    """All exercises, below `root`."""
    for language in languages():
        for slug, files in _tables(language)["exercises"].items():
            folder = root / language / "exercises" / "practice" / slug
            for name, text in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
    tests = root / "cpp" / "exercises" / "practice" / "add" / "test"
    tests.mkdir()
    for path in CATCH.iterdir():
        (tests / path.name).write_bytes(path.read_bytes())
    return Exercism(root, "red-team")


def task(benchmark: Exercism, case: Case) -> Task:
    return next(task for task in benchmark.tasks() if task.instance_id == case.instance_id)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def _tables(language: str) -> Mapping[str, Any]:
    return tomllib.loads((EXPLOITS / f"{language}.toml").read_text(encoding="utf-8"))


def _shown(files: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not path.startswith(".meta/")}


def _encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}
