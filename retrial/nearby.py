"""Which test files of a repository belong to the files that a patch edits.

Known are the tree at the base commit and the names of the edited files, nothing else: neither the hidden tests nor
their names. So a run that shows these tests to an agent may stand on a leaderboard.

A test belongs to a source file if their paths are alike (`core/tests/test_expr.py`, `core/expr.py`), and if it speaks
of what that file defines. In both, a word counts the more the fewer tests have it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import TypeVar

Term = TypeVar("Term", str, bytes)

LIMIT = 5
"""Few, for they are run after each turn."""
_WORTH = 0.4
"""What a test must score, against the best, to be worth its seconds."""

_MENTIONS = 1.5
"""What the mentions weigh; the likeness of paths weighs 1."""
_FOLDER = 0.6
"""What the name of a folder weighs, against the name of what lies in it."""

_LANGUAGES = {
    "python": (".py .pyx .pxd", rb"(?:async )?def test_|class Test"),
    "javascript": (".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte", rb"(?:describe|it|test|suite)(?:\.\w+)*\("),
    "go": (".go", rb"func (?:Test|Example|Fuzz)"),
    "rust": (".rs", rb"#\[(?:\w+::)*test\b"),
    "jvm": (".java .kt .scala .groovy", rb"@\w*Test\b|.*\bextends \w*(?:Test|Spec|Suite)"),
    "ruby": (".rb", rb"def test_|(?:RSpec\.)?(?:describe|it|test|context)\b"),
    "php": (".php", rb".*\bfunction test|#\[Test\b|\* @test\b|(?:describe|it|test)\("),
    "c": (".c .cc .cpp .cxx .h .hh .hpp", rb"\w*TEST\w* ?\(|.*\btest_\w+ ?\("),
    "c#": (".cs", rb"\[(?:Fact|Theory|Test)"),
}
"""Suffixes of a language, and how the line begins that begins a test."""
_LANGUAGE = {suffix: name for name, (suffixes, _) in _LANGUAGES.items() for suffix in suffixes.split()}
_TEST = {name: re.compile(rb"^[ \t]*(?:%b)" % line, re.MULTILINE) for name, (_, line) in _LANGUAGES.items()}
_OUTER_TEST = {name: re.compile(rb"^(?:%b)" % line, re.MULTILINE) for name, (_, line) in _LANGUAGES.items()}

_SAYS_TEST = {"test", "tests", "spec", "specs", "unittest"}
_TEST_FOLDERS = {"test", "tests", "testing", "__tests__", "spec", "specs"}
_HELPERS = {"__init__", "conftest", "test_helper", "spec_helper", "rails_helper"}
_SAYS_NOTHING = _SAYS_TEST | {"testing", "src", "lib", "main", "init", "index", "mod"}

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORD = re.compile(rb"[A-Za-z_]\w\w+")
_DEFINED = re.compile(
    rb"^[ \t]*(?:(?:export|default|public|protected|static|final|abstract|async|unsafe|pub(?:\([a-z]+\))?) +)*"
    rb"(?:def|class|func|function|fn|struct|enum|trait|interface|module|type|const|record|object)[ \t]+"
    rb"(?:self\.|\([^)\n]*\) *)?([A-Za-z_]\w\w+)"
    rb"|^([A-Za-z_]\w\w+)[ \t]*=",
    re.MULTILINE,
)


def choose(edited: Collection[str], files: Mapping[str, bytes], limit: int = LIMIT) -> tuple[str, ...]:
    """The tests among `files` that belong to the edited ones, best first; none where none does."""
    # What is written about the code (change logs, manuals) says little, unless there is nothing else.
    sources = [path for path in sorted(edited) if _language(path)] or sorted(edited)
    tests = _tests(files, {_language(path) for path in sources})
    likeness, mentions = _likeness(sources, tests), _mentions(sources, tests, files)
    scores = {test: likeness[test] + _MENTIONS * mentions[test] for test in tests}
    best = sorted((test for test in tests if scores[test] > 0), key=lambda test: (-scores[test], test))[:limit]
    return tuple(test for test in best if scores[test] >= _WORTH * scores[best[0]])


def is_test(path: str, content: bytes) -> bool:
    """Whether a runner would find tests in it: its name or its folder says so, and there are some."""
    *folders, name = path.split("/")
    language, stem = _language(path), name.rpartition(".")[0]
    if not language or stem in _HELPERS:
        return False
    words = _words(stem)
    if words and not _SAYS_TEST.isdisjoint((words[0], words[-1])):
        return bool(_TEST[language].search(content))
    return not _TEST_FOLDERS.isdisjoint(folders) and bool(_OUTER_TEST[language].search(content))


def _language(path: str) -> str:
    return _LANGUAGE.get(PurePosixPath(path).suffix, "")


def _tests(files: Mapping[str, bytes], languages: Collection[str]) -> list[str]:
    """In these languages; in any, if no language is known."""
    paths = [path for path in files if _language(path) in languages or not any(languages)]
    return [path for path in paths if is_test(path, files[path])]


def _likeness(sources: Iterable[str], tests: Collection[str]) -> Mapping[str, float]:
    """How alike the paths are: the cosine between them, words being the dimensions."""
    rare = _rarity(map(_bag, tests))
    wanted = [_unit(source, rare) for source in sources]
    found = {test: _unit(test, rare) for test in tests}
    return {test: sum(_dot(one, found[test]) for one in wanted) for test in tests}


def _mentions(sources: Iterable[str], tests: Collection[str], files: Mapping[str, bytes]) -> Mapping[str, float]:
    """Which share of the names that a source file defines a test has."""
    words = {test: frozenset(_WORD.findall(files[test])) for test in tests}
    rare = _rarity(words.values())
    wanted = [{name: rare(name) ** 2 for name in _defined(source, files)} for source in sources]
    return {test: sum(_share(one, words[test]) for one in wanted) for test in tests}


def _rarity(bags: Iterable[Iterable[Term]]) -> Callable[[Term], float]:
    """How much a word tells: much if few tests have it, nothing if none has."""
    seen: Counter[Term] = Counter()
    total = 0
    for bag in bags:
        seen.update(bag)
        total += 1
    return lambda term: math.log((total + 1) / (seen[term] + 0.5)) if term in seen else 0.0


def _unit(path: str, rare: Callable[[str], float]) -> Mapping[str, float]:
    weights = {word: weight * rare(word) for word, weight in _bag(path).items()}
    length = math.hypot(*weights.values()) or 1.0
    return {word: weight / length for word, weight in weights.items()}


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())


def _share(weights: Mapping[bytes, float], words: Collection[bytes]) -> float:
    whole = sum(weights.values())
    return math.sqrt(sum(weight for name, weight in weights.items() if name in words) / whole) if whole else 0.0


def _bag(path: str) -> Mapping[str, float]:
    """The words of a path that tell something, with what they weigh: the file's name most, outer folders least."""
    bag: dict[str, float] = {}
    weight = 1.0
    for part in reversed(PurePosixPath(path).with_suffix("").parts):
        words = [word for word in _words(part) if word not in _SAYS_NOTHING]
        for word in words:
            bag.setdefault(word if len(word) < 4 else word.removesuffix("s"), weight)
        weight *= _FOLDER if words else 1.0
    return bag


def _words(name: str) -> list[str]:
    return [piece.lower() for piece in _PIECE.findall(name)]


def _defined(source: str, files: Mapping[str, bytes]) -> set[bytes]:
    """The names that others may know a file's content by, its own among them."""
    own = [part for part in PurePosixPath(source).with_suffix("").parts if part not in ("__init__", "index", "mod")]
    names = {first or second for first, second in _DEFINED.findall(files.get(source, b""))}
    return names | {own[-1].encode()} if own else names
