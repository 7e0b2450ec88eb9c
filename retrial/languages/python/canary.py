"""Canaries for Python: copies of unittest methods and of pytest functions, in which a literal is another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.candidates import NAME, Expected, Test, TestFile, candidates
from retrial.languages.canaries.syntax import Span, bytes_of, field, parse, text_of, walk, within
from retrial.languages.python.assertions import Rank, called, claims

if TYPE_CHECKING:
    from tree_sitter import Node

PATTERNS = ("test_*.py", "*_test.py")
PREFIX = "test_"
NOT_RUN = re.compile(rb"skip|xfail|expectedFailure|given|flaky|slow|timeout")
UNSURE = re.compile(rb"\b(sleep|Thread|random|time|perf_counter|monotonic|setrecursionlimit|while)\b")
"""In tests that may take long, or be another each time."""
PARAMETERS = re.compile(rb"[ \t]*\(((?:[^()]|\([^()]*\))*)\)")
LITERALS = 4
"""Of one test: more would only be the same claim again."""

Wanted = Callable[[tuple[str, ...]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """A function that may be a test."""

    function: Node
    whole: Node
    """With its decorators."""
    path: tuple[str, ...]
    """The classes it stands in, and its own name."""

    @property
    def decorators(self) -> list[Node]:
        return [child for child in self.whole.children if child.type == "decorator"]


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    return candidates(
        tests(path, source)
        for path, source in sorted(files.items())
        if any(fnmatch(PurePosixPath(path).name, pattern) for pattern in PATTERNS)
    )


def tests(path: str, source: bytes, wanted: Wanted = lambda test: True, worst: Rank = Rank.INPUT) -> TestFile:
    """The tests of a module, those with the best literals first. Of any Python, 2 or 3: it is not compiled.

    For other benchmarks: `candidates([tests(path, source, wanted)])` are those of a file of which only some tests
    may be copied. `wanted` is asked with the names of the classes around a test and its own, as in `("TestAdd",
    "test_small")`; the others serve as places to stand before. Claims of a worse rank than `worst` are left alone.
    """
    definitions = list(_definitions(parse("python", source), ()))
    helpers = frozenset(each.path[-1] for each in definitions if not _is_test(each) and _asserts(each.function))
    found = [
        _test(each, whole, _claims(each, helpers, worst) if wanted(each.path) else ())
        for each in definitions
        if _is_test(each) and (whole := _lines(each.whole, source)) is not None
    ]
    file = TestFile(path=path, source=source, tests=found, naming=Naming.SNAKE, prefix=PREFIX)
    expected = [each for test in found for each in test.expected]
    constants = sorted({file.text(each.span) for each in expected if each.sureness == Rank.NAMED})

    def with_other(each: Expected) -> Expected:
        named = each.sureness == Rank.NAMED
        return replace(each, other=_another(file.text(each.span), constants)) if named else each

    tests = [replace(test, expected=tuple(map(with_other, test.expected))) for test in found]
    return with_weak(replace(file, tests=sorted(tests, key=lambda test: _order(source, test))))


def with_weak(file: TestFile) -> TestFile:
    """With a weak test that has the assertion and the parameters of the file's first one."""
    parameters = PARAMETERS.match(file.source, file.tests[0].name[1]) if file.tests else None
    if parameters is None:
        return file
    head = file.text((file.tests[0].whole[0], file.tests[0].name[0]))
    indent = head[: len(head) - len(head.lstrip())]
    given = parameters[1].decode("utf-8", "surrogateescape")
    ours = b"self.assert" in file.source and given.lstrip().startswith("self")
    failure = "self.assertEqual(1, 2)" if ours else "assert 1 == 2"
    return replace(file, weak=f"{head}{NAME}({given}):\n{indent}    {failure}\n\n")


def _definitions(node: Node, around: tuple[str, ...]) -> Iterator[_Definition]:
    """Functions of a module and of its classes, also where they depend on a condition."""
    for child in node.named_children:
        inner = field(child, "definition") or child
        name = field(inner, "name")
        if inner.type == "function_definition" and name is not None:
            yield _Definition(function=inner, whole=child, path=(*around, text_of(name)))
        elif inner.type == "class_definition" and name is not None:
            yield from _definitions(inner, (*around, text_of(name)))
        elif inner.type in ("block", "if_statement", "try_statement"):
            yield from _definitions(inner, around)


def _is_test(definition: _Definition) -> bool:
    return definition.path[-1].startswith("test")


def _asserts(function: Node) -> bool:
    return any(
        node.type == "assert_statement" or (node.type == "call" and called(node).startswith("assert"))
        for node in walk(function)
    )


def _lines(node: Node, source: bytes) -> Span | None:
    """From the beginning of its first line; None where something else is on it, or where it cannot be parsed."""
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    if node.has_error or source[start : node.start_byte].strip(b" \t"):
        return None
    return start, node.end_byte


def _claims(definition: _Definition, helpers: frozenset[str], worst: Rank) -> tuple[Expected, ...]:
    if any(NOT_RUN.search(bytes_of(decorator)) for decorator in definition.decorators):
        return ()
    found = [each for each in claims(definition.function, definition.decorators, helpers) if each.sureness <= worst]
    # What is put in serves only where nothing that is expected does.
    expected = [each for each in found if each.sureness < Rank.INPUT]
    return tuple((expected or found)[:LITERALS])


def _order(source: bytes, test: Test) -> tuple[int, bool, bool, Span]:
    text = source[slice(*test.whole)]
    best = test.expected[0].sureness if test.expected else len(Rank)
    return best, bool(UNSURE.search(text)), text.lstrip().startswith(b"@"), test.whole


def _test(definition: _Definition, whole: Span, claimed: tuple[Expected, ...]) -> Test:
    parent = definition.whole.parent
    return Test(
        whole=whole,
        name=(field(definition.function, "name") or definition.function).byte_range,
        expected=claimed,
        unsure=bool(claimed) and claimed[0].sureness >= Rank.INPUT,
        scope=parent.start_byte if parent is not None else 0,
        bound=bool(definition.decorators) or _evaluates(definition.function),
    )


def _evaluates(function: Node) -> bool:
    """Whether the definition itself evaluates something: a default value or an annotation."""
    plain = ("identifier", "keyword_separator", "positional_separator")
    evaluated = any(each.type not in plain for each in within(function, "parameters"))
    return evaluated or field(function, "return_type") is not None


def _another(constant: str, constants: list[str]) -> str:
    """Of the same module or class; empty where the tests know no other."""
    owner = constant.rpartition(".")[0]
    return next((each for each in constants if each != constant and each.rpartition(".")[0] == owner), "")
