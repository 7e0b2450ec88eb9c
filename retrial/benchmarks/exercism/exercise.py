"""One exercise folder: which of its files are for what. Tests, `.meta` and all else with a dot never reach an agent.

Exercises come from strangers: nothing but regular files that really are below the benchmark's folder is read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retrial import registry
from retrial.chat import Json
from retrial.errors import PatchError, TreeError, UsageError
from retrial.language import Language
from retrial.patches import policy
from retrial.patches.git import check_name, plain_path
from retrial.store import integrity
from retrial.system.files import read_real_file, special_kind, why_unreadable
from retrial.types import fingerprint

PRACTICE = Path("exercises/practice")
CONFIG = Path(".meta/config.json")
CACHES = ("__pycache__",)
META, DOCUMENTS = ".meta/", ".docs/"
DOCS = tuple(DOCUMENTS + name for name in ("introduction.md", "instructions.md", "instructions.append.md"))
MOST = 16 << 20
"""Bytes of one file: the largest in public sets (Catch) has 0.7 MB."""
MOST_TEXT = 1 << 20
"""Bytes of one file of instructions, which go into a prompt: in public sets 13 kB."""


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
    documents: tuple[str, ...]
    """What the problem statement is made of, in its order."""
    test_command: str
    optimised: bool
    needs: tuple[str, ...] = ()
    """Tools that only some tasks of the language need."""

    @property
    def instructions(self) -> str:
        texts = [_text(f"{self.root}/{path}", MOST_TEXT) for path in self.documents]
        return "\n\n".join(text.replace("\r\n", "\n").replace("\r", "\n").strip() for text in texts)


def _text(path: str, most: int) -> str:
    try:
        return read_real_file(path, most).decode("utf-8", "replace")
    except OSError as error:
        raise _unreadable(error) from error


def folders(root: Path, problems: list[str]) -> Iterable[tuple[Path, str]]:
    """Exercise folders below a folder whose path is real, each with its language; a link that leads to some is a
    problem."""
    if (root / PRACTICE).is_dir():
        language = str(_json(f"{root}/config.json").get("slug", ""))
        yield from ((folder, language) for folder in _exercise_folders(root / PRACTICE, problems))
        return
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    for name in names:
        if (practice := root / name / PRACTICE).is_dir():
            yield from ((folder, name) for folder in _exercise_folders(practice, problems))


def _exercise_folders(practice: Path, problems: list[str]) -> list[Path]:
    if why := why_unreadable(str(practice)):
        problems.append(f"{practice} {why}.")
        return []
    with os.scandir(practice) as entries:
        found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    problems += (f"{plain_path(entry.path)} is {kind}." for entry in found if (kind := special_kind(entry)))
    return [practice / entry.name for entry in found if entry.is_dir(follow_symlinks=False)]


def _refusal(path: str, entry: os.DirEntry[str]) -> str:
    if kind := special_kind(entry):
        return f"is {kind}, not a regular file"
    most = MOST_TEXT if path.startswith(DOCUMENTS) else MOST
    size = entry.stat(follow_symlinks=False).st_size
    return f"has {size} bytes, more than {most}" if size > most else ""


def read_exercise(root: Path, language_name: str) -> Exercise:
    """Raises: UsageError, with all files that may not be there, each with its path."""
    language = _language(language_name)
    scanned = _scan(root, language.build_folders)
    config, there = _json(f"{root}/{CONFIG}"), sorted(scanned, key=lambda path: path.split("/"))
    files = {kind: _names(config, kind, root, scanned) for kind in ("solution", "test", "editor", "example")}
    if not files["solution"] or not files["test"]:
        raise UsageError(f"{root / CONFIG} must name at least one solution file and one test file.")
    visible = [path for path in there if not _is_hidden(path) and not path.endswith(".pyc")]
    plain = [path for path in visible if path not in files["example"]]
    # Test files that no list names are tests all the same: they must not reach an agent, and are put back for a check.
    unlisted = [path for path in plain if policy.matches(path, language.tests) and path not in files["solution"]]
    tests = {*files["test"], *unlisted}
    more = [path for path in language.reference_files if path in scanned]
    custom = config.get("custom")
    return Exercise(
        instance_id=f"aider_{language.name}_{root.name.replace('-', '_')}",
        root=root,
        language=language,
        solution=files["solution"],
        test=tuple(sorted(tests)),
        beside=_beside(plain, {**files, "test": tuple(tests)}, language),
        example=tuple(dict.fromkeys([*files["example"], *more])),
        shown=tuple(path for path in plain if path not in tests),
        documents=tuple(path for path in DOCS if path in scanned),
        test_command=_test_command(config, root),
        optimised=isinstance(custom, dict) and custom.get("test-in-release-mode") is True,
        needs=tuple(
            tool
            for tool, (path, pattern) in language.optional.items()
            if path in scanned and re.search(pattern, _text(f"{root}/{path}", MOST))
        ),
    )


@functools.cache
def _language(name: str) -> Language:
    """One for all of its exercises: there may be thousands."""
    language: Language = registry.module("languages", name).make()
    return language


def _beside(plain: Iterable[str], files: Mapping[str, tuple[str, ...]], language: Language) -> tuple[str, ...]:
    listed = [path for path in files["editor"] if path not in files["test"]]
    folders = {os.path.dirname(path) for path in files["solution"]}
    unlisted = [
        path
        for path in plain
        if path.endswith(language.suffixes)
        and not any(path in names for names in files.values())
        and os.path.dirname(path) in folders
        and not policy.matches(path, language.protected_globs)
    ]
    return (*listed, *unlisted)


def _scan(root: Path, build_folders: tuple[str, ...]) -> set[str]:
    """All files but those in caches, which hold compiled tests, and in folders of no exercise, such as `.git`.

    Raises: UsageError naming what is not a regular file, or too large.
    """
    found, refused, waiting = set[str](), list[str](), [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                foreign = _is_hidden(path) and not f"{path}/".startswith((META, DOCUMENTS))
                if foreign or entry.name in CACHES or path in build_folders:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                elif why := _refusal(path, entry):
                    refused.append(f"{plain_path(entry.path)} {why}.")
                else:
                    found.add(path)
    if refused:
        raise integrity.refuse(sorted(refused))
    return found


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _names(config: Mapping[str, Json], kind: str, root: Path, there: Collection[str]) -> tuple[str, ...]:
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
        if name in there:
            continue
        if not os.path.isfile(f"{root}/{name}"):
            raise UsageError(f"{root / CONFIG} names a {kind} file that is not there: {name}.")
        if why := why_unreadable(f"{root}/{name}", MOST):
            raise UsageError(f"{root / CONFIG} names a {kind} file that cannot be one: {root / name} {why}.")
    return tuple(names)


def _test_command(config: Mapping[str, Json], root: Path) -> str:
    command = config.get("test_command", "")
    if not isinstance(command, str):
        raise UsageError(f"{root / CONFIG} must give its test_command as one text.")
    return command


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def read_files(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    try:
        return {path: read_real_file(f"{root}/{path}", MOST) for path in paths}
    except OSError as error:
        raise TreeError(f"A file of the benchmark cannot be read: {error.filename}: {error.strerror}.") from error


def _json(path: str) -> Mapping[str, Json]:
    try:
        value = json.loads(read_real_file(path, MOST).decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing: is this folder in Exercism layout?") from None
    except OSError as error:
        raise _unreadable(error) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object.")
    return value


def _unreadable(error: OSError) -> UsageError:
    return UsageError(f"{error.filename} cannot be read: {error.strerror}.")
