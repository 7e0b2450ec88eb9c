"""One exercise folder: which of its files are for what. Tests, `.meta` and all else with a dot never reach an agent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial import patches, registry
from retrial.errors import PatchError, TreeError, UsageError
from retrial.names import check_name
from retrial.protocols import Language
from retrial.types import fingerprint

PRACTICE = Path("exercises/practice")
CONFIG = Path(".meta/config.json")
CACHES = ("__pycache__",)
DOCS = ("introduction.md", "instructions.md", "instructions.append.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTree:
    """Some files of one folder on this machine."""

    root: Path
    paths: tuple[str, ...]

    @property
    def digest(self) -> str:
        return fingerprint({path: hashlib.sha256(content).hexdigest() for path, content in self.files().items()})

    def files(self) -> Mapping[str, bytes]:
        return read_files(self.root, self.paths)

    def modes(self) -> Mapping[str, str]:
        return {}

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return read_files(self.root, [path for path in paths if path in self.paths])


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
    optimised: bool

    @property
    def instance_id(self) -> str:
        return f"aider_{self.language.name}_{self.root.name.replace('-', '_')}"

    @property
    def instructions(self) -> str:
        docs = [self.root / ".docs" / name for name in DOCS]
        return "\n\n".join(doc.read_text(encoding="utf-8", errors="replace").strip() for doc in docs if doc.is_file())


def folders(root: Path) -> Iterable[tuple[Path, str]]:
    if (root / PRACTICE).is_dir():
        language = str(_json(root / "config.json").get("slug", ""))
        yield from ((folder, language) for folder in _subfolders(root / PRACTICE))
        return
    for track in _subfolders(root):
        if (track / PRACTICE).is_dir():
            yield from ((folder, track.name) for folder in _subfolders(track / PRACTICE))


def _subfolders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def read_exercise(root: Path, language_name: str) -> Exercise:
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
        optimised="test-in-release-mode" in _true(config.get("custom")),
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
    for name in names:
        try:
            check_name(name)
        except PatchError as error:
            raise UsageError(f"{root / CONFIG} names a {kind} file that cannot be one. {error}") from error
        if not os.path.isfile(root / name):
            raise UsageError(f"{root / CONFIG} names a {kind} file that is not there: {name}.")
    return tuple(names)


def _test_command(config: Mapping[str, Any], root: Path) -> str:
    command = config.get("test_command", "")
    if not isinstance(command, str):
        raise UsageError(f"{root / CONFIG} must give its test_command as one text.")
    return command


def _true(settings: object) -> set[str]:
    return {name for name, value in settings.items() if value is True} if isinstance(settings, dict) else set()


def read_files(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    try:
        return {path: (root / path).read_bytes() for path in paths}
    except OSError as error:
        raise TreeError(f"A file of the benchmark cannot be read: {error}.") from error


def _json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing: is this folder in Exercism layout?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object.")
    return value
