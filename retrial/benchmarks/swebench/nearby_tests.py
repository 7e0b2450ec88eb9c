"""Which test files of a repository belong to the files that a patch edits.

Known are the tree at the base commit and the names of the edited files, nothing else: neither the hidden tests nor
their names. So a run that shows these tests to an agent may stand on a leaderboard.

A test belongs to a source file if their paths are alike (`core/tests/test_expr.py`, `core/expr.py`), and if it speaks
of what that file defines. In both, a word counts the more the fewer tests have it. Imports are not read apart: a test
that imports a file has its name, and names what it uses of it. (`speed/nearby.py` measures all this.)
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias, TypeVar

Term = TypeVar("Term", str, bytes)
_Signal: TypeAlias = Mapping[tuple[str, str], float]
"""(Source file, test) → how much the test belongs to it, from 0 to 1."""

LIMIT = 5
"""Few, for they are run after each turn."""
_WORTH = 0.3
"""What a test must score, against the best, to be worth its seconds."""
_MENTIONS = 1.5
"""What the mentions weigh; the likeness of paths weighs 1."""
_FOLDER = 0.6
"""What the name of a folder weighs, against the name of what lies in it."""
_UNSAID = 9.0
"""As if a file defined one more name that no test has; else one whose every name is common would be all mentioned."""


@dataclass(frozen=True, slots=True)
class _Language:
    suffixes: str
    test: bytes
    """How a line begins that begins a test."""
    folders: str = ""
    """Where a file may have any name and be run for its tests."""


_LANGUAGES = (
    _Language(".py .pyx .pxd", rb"(?:async )?def test_|class Test\w*(?:\(object\))?:", "tests testing"),
    _Language(
        ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte",
        rb"(?:describe|it|test|suite)(?:\.\w+)*\(",
        "test tests __tests__ spec specs",
    ),
    _Language(".go", rb"func (?:Test|Example|Fuzz)"),
    _Language(".rs", rb"#\[(?:\w+::)*test\b", "tests"),
    _Language(".java .kt .scala .groovy", rb"@\w*Test\b|.*\bextends \w*(?:Test|Spec|Suite)"),
    _Language(".rb", rb"def test_|(?:RSpec\.)?(?:describe|it|test|context|should)\b"),
    _Language(".php", rb".*\bfunction test|#\[Test\b|\* @test\b|(?:describe|it|test)\("),
    _Language(".c .cc .cpp .cxx .h .hh .hpp", rb"\w*TEST\w* ?\(|.*\btest_\w+ ?\(", "test tests"),
    _Language(".cs", rb"\[(?:Fact|Theory|Test)"),
)
_LANGUAGE = {suffix: language for language in _LANGUAGES for suffix in language.suffixes.split()}
_NEVER_TESTS = (".pyx", ".pxd", ".h", ".hh", ".hpp")
_HELPERS = {"__init__", "conftest", "unittest", "test_helper", "spec_helper", "rails_helper"}
_SAYS_TEST = {"test", "tests", "spec", "specs", "unittest"}
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
    tests = _tests(files, [language for language in map(_language, sources) if language])
    likeness, mentions = _likeness(sources, tests), _mentions(sources, tests, files)

    def score(test: str) -> float:
        # Not the plain sum: what belongs to one file comes before what has a little to do with many.
        # And of two that are as near, the larger tests more.
        near = math.hypot(*(likeness[source, test] + _MENTIONS * mentions[source, test] for source in sources))
        return near * math.log(len(files[test]))

    scores = {test: score(test) for test in tests}
    best = sorted((test for test in tests if scores[test] > 0), key=lambda test: (-scores[test], test))[:limit]
    return tuple(test for test in best if scores[test] >= _WORTH * scores[best[0]])


def is_test(path: str, files: Mapping[str, bytes]) -> bool:
    """Whether a runner would find tests in it: its name or its folder says so, and there are some."""
    *folders, name = path.split("/")
    language, stem = _language(path), name.rpartition(".")[0]
    if not language or stem in _HELPERS or name.endswith(_NEVER_TESTS):
        return False
    words = _words(stem)
    if words and not _SAYS_TEST.isdisjoint((words[0], words[-1])):
        return _begins(rb"[ \t]*", language, files[path])
    # Inside something else, what looks like a test may be a helper's method.
    return not set(language.folders.split()).isdisjoint(folders) and _begins(b"", language, files[path])


def _begins(indent: bytes, language: _Language, content: bytes) -> bool:
    return re.search(rb"^%b(?:%b)" % (indent, language.test), content, re.MULTILINE) is not None


def _language(path: str) -> _Language | None:
    return _LANGUAGE.get(PurePosixPath(path).suffix)


def _tests(files: Mapping[str, bytes], languages: Collection[_Language]) -> list[str]:
    """In these languages; in any, if there are none."""
    paths = [path for path in files if not languages or _language(path) in languages]
    return [path for path in paths if is_test(path, files)]


def _likeness(sources: Iterable[str], tests: Collection[str]) -> _Signal:
    """How alike the paths are: the cosine between them, words being the dimensions."""
    rare = _rarity([_bag(test) for test in tests])
    units = {test: _unit(test, rare) for test in tests}
    wanted = {source: _unit(source, rare) for source in sources}
    return {(source, test): _dot(wanted[source], units[test]) for source in sources for test in tests}


def _mentions(sources: Iterable[str], tests: Collection[str], files: Mapping[str, bytes]) -> _Signal:
    """Which share of the names that a source file defines a test has."""
    words = {test: frozenset(_WORD.findall(files[test])) for test in tests}
    rare = _rarity(words.values())
    names = {source: {name: rare(name) ** 2 for name in _defined(source, files)} for source in sources}
    return {(source, test): _share(names[source], words[test]) for source in sources for test in tests}


def _rarity(bags: Collection[Iterable[Term]]) -> Callable[[Term], float]:
    """How much a word tells: much if few tests have it, nothing if none has."""
    seen = Counter(term for bag in bags for term in bag)
    return lambda term: math.log((len(bags) + 1) / (seen[term] + 0.5)) if term in seen else 0.0


def _unit(path: str, rare: Callable[[str], float]) -> Mapping[str, float]:
    weights = {word: weight * rare(word) for word, weight in _bag(path).items()}
    length = math.hypot(*weights.values()) or 1.0
    return {word: weight / length for word, weight in weights.items()}


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())


def _share(weights: Mapping[bytes, float], words: Collection[bytes]) -> float:
    said = sum(weight for name, weight in weights.items() if name in words)
    return math.sqrt(said / (sum(weights.values()) + _UNSAID))


def _bag(path: str) -> Mapping[str, float]:
    """The words of a path that tell something, with what they weigh: the file's name most, outer folders least."""
    bag: dict[str, float] = {}
    weight = 1.0
    for part in reversed(PurePosixPath(path).with_suffix("").parts):
        words = [word for word in _words(part) if word not in _SAYS_NOTHING]
        for word in words:
            bag.setdefault(_singular(word), weight)
        weight *= _FOLDER if words else 1.0
    return bag


def _words(name: str) -> list[str]:
    return [piece.lower() for piece in _PIECE.findall(name)]


def _singular(word: str) -> str:
    """Roughly: tests of `query.py` may lie in `queries/`."""
    if len(word) < 4:
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _defined(source: str, files: Mapping[str, bytes]) -> set[bytes]:
    """The names that others may know a file's content by, its own among them."""
    own = [part for part in PurePosixPath(source).with_suffix("").parts if part not in ("__init__", "index", "mod")]
    names = {first or second for first, second in _DEFINED.findall(files.get(source, b""))}
    return names | {part.encode("utf-8", "surrogateescape") for part in own[-1:]}
