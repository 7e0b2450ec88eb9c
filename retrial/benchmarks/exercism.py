"""Any folder in Exercism layout: `<language>/exercises/practice/<slug>`, or one track's `exercises/practice/<slug>`.

`.meta/config.json` names solution, test, editor and example files and may give a `test_command`;
`.docs/*.md` are the instructions. Tests, `.meta` and everything else with a dot never reach an agent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from retrial import clones, git, patches, registry
from retrial.clones import Source
from retrial.errors import TreeError, UsageError
from retrial.paths import PROJECT
from retrial.protocols import Context, Language, Suite
from retrial.store import SAFE
from retrial.types import Answer, Check, Task, fingerprint

PRACTICE = Path("exercises/practice")
CONFIG = Path(".meta/config.json")
CACHES = ("__pycache__",)
DOCS = ("introduction.md", "instructions.md", "instructions.append.md")
DEMO = PROJECT / "tasks" / "demo"
BUNDLED = {"demo-python": ("python",), "demo": ()}
"""Name → which of its languages; all of them when none is said."""
SOURCES = {
    "aider-polyglot": Source(
        url="https://github.com/Aider-AI/polyglot-benchmark", commit="7e0611e77b54e2dea774cdc0aa00cf9f7ed6144f"
    ),
    "exercism-python": Source(
        url="https://github.com/exercism/python", commit="f6caa44faa8fb7d0de9a54ddb5c6183e027429c6"
    ),
}
ALIASES = {"aider-ai/polyglot-benchmark": "aider-polyglot", "exercism/python": "exercism-python"}

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
    beside: tuple[str, ...]
    """Sources that the solution may use and a patch may not change: editor files, and others in no list."""
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

    def __init__(
        self,
        root: Path,
        name: str,
        default_tries: int = EXERCISE_TRIES,
        *,
        source: Source | None = None,
        languages: tuple[str, ...] = (),
        image: str = "",
        show_editor_files: bool = True,
    ) -> None:
        self.root = root
        self.name = name
        self.default_tries = default_tries
        self._source = source
        self._languages = languages or registry.names("languages")
        self._image = image
        self._show_editor_files = show_editor_files

    @cached_property
    def provenance(self) -> Mapping[str, str]:
        known = [
            (task.problem_statement, task.tree.digest, self.visible(task.instance_id).digest) for task in self.tasks()
        ]
        digest = fingerprint(known)[:16]
        if self.root == DEMO:
            return {"source": self.name, "digest": digest}
        if self._source:
            return {"source": self.name, "url": self._source.url, "commit": self._source.commit, "digest": digest}
        return {"source": str(self.root.resolve()), "commit": _commit(self.root), "digest": digest}

    def tasks(self) -> tuple[Task, ...]:
        return self._tasks

    def visible(self, instance_id: str) -> Check:
        return _check(self._exercises[instance_id], hidden=False)

    def answer(self, instance_id: str) -> Answer:
        exercise = self._exercises[instance_id]
        base = _read(exercise.root, exercise.shown)
        example = _read(exercise.root, exercise.example)
        reference = exercise.language.reference(exercise.solution, example)
        return Answer(patch=patches.diff(base, {**base, **reference}), check=_check(exercise, hidden=True))

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        return tuple(self._task(self._exercises[instance_id]) for instance_id in sorted(self._exercises))

    def _task(self, exercise: Exercise) -> Task:
        language, slug = exercise.language, exercise.root.name
        partial = tuple(path for path in exercise.solution if path in language.partial)
        return Task(
            instance_id=exercise.instance_id,
            benchmark=self.name,
            language=language.name,
            problem_statement=exercise.instructions,
            tree=FolderTree(root=exercise.root, paths=exercise.shown),
            environment=replace(language.environment, image=self._image or language.environment.image),
            editable=exercise.solution,
            partial=partial,
            addable=tuple(f"*{suffix}" for suffix in language.suffixes),
            reserved=(*language.tests, *language.reserved),
            read_only=(*exercise.beside, *partial) if self._show_editor_files else (),
            aliases=(f"{language.name}/{slug}", slug),
        )

    @cached_property
    def _exercises(self) -> Mapping[str, Exercise]:
        found = [_exercise(folder, language) for folder, language in _folders(self.root) if language in self._languages]
        if not found:
            raise UsageError(
                f"No exercise in {self.root}: expected <language>/{PRACTICE}/<slug> or {PRACTICE}/<slug>, "
                f"of a language that has a part: {', '.join(self._languages)}."
            )
        by_id = {exercise.instance_id: exercise for exercise in found}
        for exercise in found:
            if not SAFE.fullmatch(exercise.instance_id):
                raise UsageError(f"{exercise.root} cannot be an exercise: its name may hold letters, digits, - and _.")
            if by_id[exercise.instance_id] is not exercise:
                raise UsageError(f"{exercise.root} and {by_id[exercise.instance_id].root} are the same task by name.")
        return by_id


def make(context: Context) -> Exercism | None:
    """The bundled demo, a public set at a known commit, or a path in Exercism layout; None for anything else."""
    name = ALIASES.get(context.name.lower(), context.name)
    image = getattr(context.options, "image", "")
    show = not getattr(context.options, "hide_editor_files", False)
    if name in BUNDLED:
        languages = BUNDLED[name]
        return Exercism(DEMO, name, DEMO_TRIES, languages=languages, image=image, show_editor_files=show)
    if source := SOURCES.get(name):
        return Exercism(clones.checkout(source), name, source=source, image=image, show_editor_files=show)
    root = Path(context.name).expanduser()
    if not context.name or not root.is_dir():
        return None
    return Exercism(root, root.resolve().name, image=image, show_editor_files=show)


def known() -> tuple[str, ...]:
    return (*BUNDLED, *SOURCES, "<path of a folder in Exercism layout>")


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
    plain = [path for path in _files(root, language.build_folders) if path not in files["example"]]
    # Test files that no list names are tests all the same: they must not reach an agent, and are put back for a check.
    tests = {*files["test"], *(path for path in plain if _is_test(path, language) and path not in files["solution"])}
    more = [path for path in language.reference_files if (root / path).is_file()]
    return Exercise(
        root=root,
        language=language,
        solution=files["solution"],
        test=tuple(sorted(tests)),
        beside=_beside(plain, {**files, "test": tuple(tests)}, language),
        example=tuple(dict.fromkeys([*files["example"], *more])),
        shown=tuple(path for path in plain if path not in tests),
        test_command=_test_command(config, root),
    )


def _is_test(path: str, language: Language) -> bool:
    return patches.matches(path, language.tests)


def _beside(plain: Iterable[str], files: Mapping[str, tuple[str, ...]], language: Language) -> tuple[str, ...]:
    listed = [path for path in files["editor"] if path not in files["test"]]
    folders = {Path(path).parent for path in files["solution"]}
    unlisted = [
        path
        for path in plain
        if path.endswith(language.suffixes)
        and Path(path).parent in folders
        and not any(path in names for names in files.values())
        and not patches.matches(path, language.reserved)
    ]
    return (*listed, *unlisted)


def _files(root: Path, build_folders: tuple[str, ...]) -> list[str]:
    """All that could be shown: no hidden files, no caches (they hold compiled tests), no links (to anything)."""
    found = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") or part in CACHES for part in parts) or parts[0] in build_folders
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


def _check(exercise: Exercise, *, hidden: bool) -> Check:
    language, command = exercise.language, exercise.test_command
    tests = _read(exercise.root, exercise.test)
    suite = Suite(solution=exercise.solution, tests=exercise.test, command=command, hidden=hidden)
    return Check(
        script=language.script(suite),
        files=language.checked(tests),
        reader=language.command_reader if command else language.reader,
        timeout=language.timeout,
        folder=exercise.root.name,
        lint=not hidden,
        telling=language.telling,
        prebuild=language.prebuild(tests),
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
