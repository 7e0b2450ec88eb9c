"""One exercise folder: which of its files are for what. Tests, `.meta` and all else with a dot never reach an agent."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial import patches, registry, small_files
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
        return fingerprint(digests(self.files()))

    def files(self) -> Mapping[str, bytes]:
        return read_files(self.root, self.paths)

    def modes(self) -> Mapping[str, str]:
        return {}

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return read_files(self.root, [path for path in paths if path in self.paths])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One exercise folder, its files sorted by what they are for."""

    instance_id: str
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
    def instructions(self) -> str:
        docs = (_document(f"{self.root}/.docs/{name}") for name in DOCS)
        return "\n\n".join(doc for doc in docs if doc is not None)


def _document(path: str) -> str | None:
    try:
        text = small_files.read(path).decode("utf-8", "replace")
    except (FileNotFoundError, IsADirectoryError):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def folders(root: Path) -> Iterable[tuple[Path, str]]:
    if (root / PRACTICE).is_dir():
        language = str(_json(f"{root}/config.json").get("slug", ""))
        yield from ((folder, language) for folder in _subfolders(root / PRACTICE))
        return
    for track in _subfolders(root):
        if (track / PRACTICE).is_dir():
            yield from ((folder, track.name) for folder in _subfolders(track / PRACTICE))


def _subfolders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    return [folder / name for name in names]


def read_exercise(root: Path, language_name: str) -> Exercise:
    config, language = _json(f"{root}/{CONFIG}"), _language(language_name)
    there = _files(root, language.build_folders)
    files = {kind: _names(config, kind, root, there) for kind in ("solution", "test", "editor", "example")}
    if not files["solution"] or not files["test"]:
        raise UsageError(f"{root / CONFIG} must name at least one solution file and one test file.")
    plain = [path for path in there if path not in files["example"]]
    # Test files that no list names are tests all the same: they must not reach an agent, and are put back for a check.
    tests = {*files["test"], *(path for path in plain if _is_test(path, language) and path not in files["solution"])}
    more = [path for path in language.reference_files if (root / path).is_file()]
    return Exercise(
        instance_id=f"aider_{language.name}_{root.name.replace('-', '_')}",
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


@functools.cache
def _language(name: str) -> Language:
    """One for all of its exercises: there may be thousands."""
    language: Language = registry.module("languages", name).make()
    return language


def _is_test(path: str, language: Language) -> bool:
    return patches.matches(path, language.tests)


def _beside(plain: Iterable[str], files: Mapping[str, tuple[str, ...]], language: Language) -> tuple[str, ...]:
    listed = [path for path in files["editor"] if path not in files["test"]]
    folders = {os.path.dirname(path) for path in files["solution"]}
    unlisted = [
        path
        for path in plain
        if path.endswith(language.suffixes)
        and not any(path in names for names in files.values())
        and os.path.dirname(path) in folders
        and not patches.matches(path, language.reserved)
    ]
    return (*listed, *unlisted)


def _files(root: Path, build_folders: tuple[str, ...]) -> list[str]:
    """All that could be shown: no hidden files, no caches (they hold compiled tests), no links (to anything)."""
    found, waiting = list[str](), [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") or name in CACHES or (not folder and name in build_folders):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{folder}{name}/")
                elif entry.is_file(follow_symlinks=False) and not name.endswith(".pyc"):
                    found.append(f"{folder}{name}")
    return sorted(found, key=lambda path: path.split("/"))


def _names(config: Mapping[str, Any], kind: str, root: Path, there: Sequence[str]) -> tuple[str, ...]:
    """`there` are files that are known to be there; there may be more."""
    files = config.get("files", {})
    names = files.get(kind, []) if isinstance(files, dict) else None
    if names == []:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{root / CONFIG} must name its {kind} files as a list.")
    for name in names:
        try:
            check_name(name)
        except PatchError as error:
            raise UsageError(f"{root / CONFIG} names a {kind} file that cannot be one. {error}") from error
        if name not in there and not os.path.isfile(f"{root}/{name}"):
            raise UsageError(f"{root / CONFIG} names a {kind} file that is not there: {name}.")
    return tuple(names)


def _test_command(config: Mapping[str, Any], root: Path) -> str:
    command = config.get("test_command", "")
    if not isinstance(command, str):
        raise UsageError(f"{root / CONFIG} must give its test_command as one text.")
    return command


def _true(settings: object) -> set[str]:
    return {name for name, value in settings.items() if value is True} if isinstance(settings, dict) else set()


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def read_files(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    try:
        return {path: small_files.read(f"{root}/{path}") for path in paths}
    except OSError as error:
        raise TreeError(f"A file of the benchmark cannot be read: {error}.") from error


def _json(path: str) -> Mapping[str, Any]:
    try:
        value = json.loads(small_files.read(path).decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing: is this folder in Exercism layout?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object.")
    return value
