"""Any folder in Exercism layout: `<language>/exercises/practice/<slug>`, or one track's `exercises/practice/<slug>`.

`.meta/config.json` names solution, test, editor and example files and may give a `test_command`;
`.docs/*.md` are the instructions. Tests, `.meta` and everything else with a dot never reach an agent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from retrial import git, patches, registry
from retrial.errors import TreeError, UsageError
from retrial.paths import PROJECT
from retrial.protocols import Context, Language
from retrial.store import SAFE
from retrial.types import Answer, Check, Task, fingerprint

PRACTICE = Path("exercises/practice")
CONFIG = Path(".meta/config.json")
CACHES = ("__pycache__", "node_modules")
DOCS = ("introduction.md", "instructions.md", "instructions.append.md")
BUNDLED = {"demo": PROJECT / "tasks" / "demo"}

DEMO_TRIES = 2
EXERCISE_TRIES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTree:
    """Some files of one folder on this machine."""

    root: Path
    paths: tuple[str, ...]

    @property
    def digest(self) -> str:
        return fingerprint({path: hashlib.sha256(content).hexdigest() for path, content in self.files().items()})

    def files(self) -> Mapping[str, bytes]:
        return _read(self.root, self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One exercise folder, its files sorted by what they are for."""

    root: Path
    language: Language
    solution: tuple[str, ...]
    test: tuple[str, ...]
    editor: tuple[str, ...]
    example: tuple[str, ...]
    shown: tuple[str, ...]
    """Everything that an agent may see."""
    test_command: str

    @property
    def instance_id(self) -> str:
        return f"aider_{self.language.name}_{self.root.name.replace('-', '_')}"

    @property
    def instructions(self) -> str:
        docs = [self.root / ".docs" / name for name in DOCS]
        return "\n\n".join(doc.read_text(encoding="utf-8", errors="replace").strip() for doc in docs if doc.is_file())


class Exercism:
    visible_is_hidden = True

    def __init__(self, root: Path, name: str, default_tries: int) -> None:
        self.root = root
        self.name = name
        self.default_tries = default_tries

    @cached_property
    def provenance(self) -> Mapping[str, str]:
        known = [
            (task.problem_statement, task.tree.digest, self.visible(task.instance_id).digest) for task in self.tasks()
        ]
        digest = fingerprint(known)[:16]
        if self.root == BUNDLED.get(self.name):
            return {"source": self.name, "digest": digest}
        return {"source": str(self.root.resolve()), "commit": _commit(self.root), "digest": digest}

    def tasks(self) -> tuple[Task, ...]:
        return self._tasks

    def visible(self, instance_id: str) -> Check:
        exercise = self._exercises[instance_id]
        return _check(exercise, exercise.language.visible_script(exercise.test, exercise.test_command), lint=True)

    def answer(self, instance_id: str) -> Answer:
        exercise = self._exercises[instance_id]
        base = _read(exercise.root, exercise.shown)
        example = _read(exercise.root, exercise.example)
        reference = exercise.language.reference(exercise.solution, example)
        script = exercise.language.hidden_script(exercise.test, exercise.test_command)
        return Answer(patch=patches.diff(base, {**base, **reference}), check=_check(exercise, script, lint=False))

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        return tuple(_task(self.name, self._exercises[instance_id]) for instance_id in sorted(self._exercises))

    @cached_property
    def _exercises(self) -> Mapping[str, Exercise]:
        languages = registry.names("languages")
        found = [_exercise(folder, language) for folder, language in _folders(self.root) if language in languages]
        if not found:
            raise UsageError(
                f"No exercise in {self.root}: expected <language>/{PRACTICE}/<slug> or {PRACTICE}/<slug>, "
                f"of a language that has a part: {', '.join(languages)}."
            )
        by_id = {exercise.instance_id: exercise for exercise in found}
        for exercise in found:
            if not SAFE.fullmatch(exercise.instance_id):
                raise UsageError(f"{exercise.root} cannot be an exercise: its name may hold letters, digits, - and _.")
            if by_id[exercise.instance_id] is not exercise:
                raise UsageError(f"{exercise.root} and {by_id[exercise.instance_id].root} are the same task by name.")
        return by_id


def make(context: Context) -> Exercism | None:
    """The bundled demo, or a path in Exercism layout; None for anything else."""
    if context.name in BUNDLED:
        return Exercism(BUNDLED[context.name], context.name, DEMO_TRIES)
    root = Path(context.name).expanduser()
    if not context.name or not root.is_dir():
        return None
    return Exercism(root, root.resolve().name, EXERCISE_TRIES)


def known() -> tuple[str, ...]:
    return (*BUNDLED, "<path of a folder in Exercism layout>")


def _commit(root: Path) -> str:
    """Of the checkout that the folder is the top of; empty when it is none."""
    if not (root / ".git").exists():
        return ""
    return git.run("rev-parse", "HEAD", git_dir=root / ".git", cwd=root).stdout.decode().strip()


def _folders(root: Path) -> Iterable[tuple[Path, str]]:
    if (root / PRACTICE).is_dir():
        language = str(_json(root / "config.json").get("slug", ""))
        yield from ((folder, language) for folder in _subfolders(root / PRACTICE))
        return
    for track in _subfolders(root):
        if (track / PRACTICE).is_dir():
            yield from ((folder, track.name) for folder in _subfolders(track / PRACTICE))


def _subfolders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def _exercise(root: Path, language_name: str) -> Exercise:
    config = _json(root / CONFIG)
    language: Language = registry.module("languages", language_name).make()
    files = {kind: _names(config, kind, root) for kind in ("solution", "test", "editor", "example")}
    if not files["solution"] or not files["test"]:
        raise UsageError(f"{root / CONFIG} must name at least one solution file and one test file.")
    plain = [path for path in _files(root) if path not in files["example"]]
    # Test files that no list names are tests all the same: they must not reach an agent, and are put back for a check.
    tests = {*files["test"], *(path for path in plain if _is_test(path, language) and path not in files["solution"])}
    return Exercise(
        root=root,
        language=language,
        solution=files["solution"],
        test=tuple(sorted(tests)),
        editor=tuple(path for path in files["editor"] if path not in tests),
        example=files["example"],
        shown=tuple(path for path in plain if path not in tests),
        test_command=_test_command(config, root),
    )


def _is_test(path: str, language: Language) -> bool:
    return any(fnmatchcase(path.rpartition("/")[2], pattern) for pattern in language.tests)


def _files(root: Path) -> list[str]:
    """All that could be shown: no hidden files, no caches (they hold compiled tests), no links (to anything)."""
    found = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") or part in CACHES for part in parts)
        linked = any((root / Path(*parts[:depth])).is_symlink() for depth in range(1, len(parts) + 1))
        if path.is_file() and not hidden and not linked and path.suffix != ".pyc":
            found.append("/".join(parts))
    return found


def _names(config: Mapping[str, Any], kind: str, root: Path) -> tuple[str, ...]:
    files = config.get("files", {})
    names = files.get(kind, []) if isinstance(files, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{root / CONFIG} must name its {kind} files as a list.")
    missing = [name for name in names if not (root / name).is_file()]
    if missing:
        raise UsageError(f"{root / CONFIG} names a {kind} file that is not there: {missing[0]}.")
    return tuple(names)


def _test_command(config: Mapping[str, Any], root: Path) -> str:
    command = config.get("test_command", "")
    if not isinstance(command, str):
        raise UsageError(f"{root / CONFIG} must give its test_command as one text.")
    return command


def _task(benchmark: str, exercise: Exercise) -> Task:
    language, slug = exercise.language, exercise.root.name
    return Task(
        instance_id=exercise.instance_id,
        benchmark=benchmark,
        language=language.name,
        problem_statement=exercise.instructions,
        tree=FolderTree(root=exercise.root, paths=exercise.shown),
        environment=language.environment,
        editable=exercise.solution,
        addable=tuple(f"*{suffix}" for suffix in language.suffixes),
        reserved=(*language.tests, *language.reserved),
        read_only=exercise.editor,
        aliases=(f"{language.name}/{slug}", slug),
    )


def _check(exercise: Exercise, script: str, *, lint: bool) -> Check:
    return Check(
        script=script,
        files=_read(exercise.root, exercise.test),
        reader=exercise.language.reader,
        folder=exercise.root.name,
        lint=lint,
    )


def _read(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    try:
        return {path: (root / path).read_bytes() for path in paths}
    except OSError as error:
        raise TreeError(f"A file of the benchmark cannot be read: {error}.") from error


def _json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing: is this folder in Exercism layout?") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object.")
    return value
