"""Java: tests that must fail, out of JUnit's test methods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from retrial.languages.canaries.candidates import MOST, NAME, TestFile, candidates
from retrial.languages.canaries.expected import Draft, Expected, Sureness, line, ranked
from retrial.languages.canaries.syntax import parse, walk
from retrial.types import Canary, Naming

if TYPE_CHECKING:
    from tree_sitter import Node

TESTS = frozenset({"Test", "ParameterizedTest"})
ROWS = "CsvSource"
LITERALS = frozenset(
    {
        *("decimal_integer_literal", "hex_integer_literal", "decimal_floating_point_literal"),
        *("string_literal", "character_literal", "true", "false"),
    }
)
LOOPS = frozenset({"for_statement", "enhanced_for_statement", "while_statement", "do_statement"})
WAITS = re.compile(rb"\b(?:Thread|sleep|ExecutorService)\b")

# Of JUnit, expected first, and of AssertJ; how close something must be is no part of what is expected.
EQUALS = frozenset({"assertEquals", "assertArrayEquals", "assertIterableEquals", "assertLinesMatch"})
EXACT = re.compile(r"isEqualTo|isCloseTo|hasSize|hasDimensions|hasToString|contains(?:Exactly|Only)\w*")
# Something else may be in there too, in another solution.
LOOSE = re.compile(r"startsWith|endsWith|contains(?!IgnoringCase)\w*")
CLOSE = "isCloseTo"
MESSAGES = re.compile(r"(?:with|has)Message(?:Containing)?")
TRUTHS = {
    "isTrue": "isEqualTo(false)",
    "isFalse": "isEqualTo(true)",
    "isZero": "isEqualTo(1)",
    "isOne": "isEqualTo(2)",
}
JUNIT = "org.junit.jupiter.api.Assertions"
JUNIT_TRUTHS = {"assertTrue": f"{JUNIT}.assertEquals(false, ", "assertFalse": f"{JUNIT}.assertEquals(true, "}

ASSERTJ = re.compile(rb"import\s+static\s+org\.assertj\.core\.api\.Assertions\.(?:assertThat|\*)\s*;")
WEAK = "    @org.junit.jupiter.api.Test\n    public void {name}() {{\n        {failure};\n    }}\n\n"


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    found = [_candidates(path, source) for path, source in sorted(files.items()) if path.endswith(".java")]
    strong = [canary for canary in chain.from_iterable(found) if canary.strong]
    weak = [canary for canary in chain.from_iterable(found) if not canary.strong]
    return (*strong[:MOST], *weak[:1])


def _candidates(path: str, source: bytes) -> tuple[Canary, ...]:
    root = parse("java", source)
    file = _File.of(root)
    drafts = [draft for method in file.methods if (draft := file.draft(source, method))]
    names = [source[slice(*draft.name)].decode(errors="replace") for draft in drafts]
    prefix = "test" if names and all(name.startswith("test") for name in names) else ""
    tests = TestFile(path=path, source=source, tests=ranked(drafts), naming=Naming.CAMEL, prefix=prefix)
    failure = "assertThat(1).isEqualTo(2)" if ASSERTJ.search(source) else f"{JUNIT}.assertEquals(1, 2)"
    return candidates(tests, WEAK.format(name=NAME, failure=failure))


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What is looked up while its tests are read."""

    methods: tuple[Node, ...]
    helpers: frozenset[str]
    """Methods that assert, to be called by tests."""
    constants: Mapping[str, tuple[str, ...]]
    """Type → those of its constants that are used."""

    @classmethod
    def of(cls, root: Node) -> _File:
        methods = tuple(node for node in walk(root) if node.type == "method_declaration")
        asserting = (method for method in methods if b"assert" in _bytes(method.child_by_field_name("body")))
        constants: dict[str, dict[str, None]] = {}
        for owner, name in (found for node in walk(root) if (found := _constant(node))):
            constants.setdefault(owner, {})[name] = None
        return cls(
            methods=methods,
            helpers=frozenset(_text(method.child_by_field_name("name")) for method in asserting),
            constants={owner: tuple(names) for owner, names in constants.items()},
        )

    def draft(self, source: bytes, method: Node) -> Draft | None:
        annotations = {_text(node.child_by_field_name("name")): node for node in _annotations(method)}
        name, body = method.child_by_field_name("name"), method.child_by_field_name("body")
        if name is None or body is None or method.parent is None or not TESTS & annotations.keys():
            return None
        nodes = tuple(walk(body))
        rows = _literals(annotations[ROWS]) if ROWS in annotations else ()
        return Draft(
            whole=(line(source, method.start_byte), method.end_byte),
            name=name.byte_range,
            expected=(*self._expected(nodes), *_all(rows, Sureness.ARGUMENT)),
            scope=method.parent.start_byte,
            unsteady=any(node.type in LOOPS for node in nodes) or bool(WAITS.search(_bytes(body))),
        )

    def _expected(self, nodes: tuple[Node, ...]) -> Iterator[Expected]:
        variables = _variables(nodes)
        for name, values in variables.items():
            if name.startswith("expect"):
                yield from _all((node for value in values for node in walk(value) if _literal(node)), Sureness.VARIABLE)
        for node in nodes:
            if node.type == "method_invocation":
                yield from self._asserted(node, variables)

    def _asserted(self, call: Node, variables: Mapping[str, list[Node]]) -> Iterator[Expected]:
        name, arguments = _text(call.child_by_field_name("name")), _arguments(call)
        if name in EQUALS:
            yield from self._values(arguments[:1], variables)
        elif name in JUNIT_TRUTHS and arguments and _plain_truth(arguments[0]):
            start = (call.child_by_field_name("object") or call).start_byte
            yield Expected(span=(start, arguments[0].start_byte), sureness=Sureness.CONSTANT, other=JUNIT_TRUTHS[name])
        elif name in self.helpers and call.child_by_field_name("object") is None:
            yield from _all(_literals(*reversed(arguments)), Sureness.ARGUMENT)
        elif _text((begin := _begin(call)).child_by_field_name("name")).startswith("assertThat"):
            yield from self._matched(begin, call, variables)

    def _matched(self, begin: Node, call: Node, variables: Mapping[str, list[Node]]) -> Iterator[Expected]:
        """By AssertJ, in a chain of calls that begins with `assertThat(…)` or its kin."""
        name, arguments = _text(call.child_by_field_name("name")), _arguments(call)
        if EXACT.fullmatch(name):
            yield from self._values(arguments[:1] if name == CLOSE else arguments, variables)
        elif LOOSE.fullmatch(name):
            yield from _all(_literals(*arguments), Sureness.ARGUMENT)
        elif MESSAGES.fullmatch(name):
            yield from _all(_literals(*arguments), Sureness.MESSAGE)
        elif name in TRUTHS and not arguments and all(map(_plain_truth, _arguments(begin))):
            named = call.child_by_field_name("name") or call
            span = named.start_byte, call.end_byte
            yield Expected(span=span, sureness=Sureness.CONSTANT, other=TRUTHS[name])

    def _values(self, arguments: Iterable[Node], variables: Mapping[str, list[Node]]) -> Iterator[Expected]:
        for argument in arguments:
            yield from _all(_literals(argument), Sureness.VALUE)
            yield from _all(_literals(*variables.get(_text(argument), ())), Sureness.VARIABLE)
            yield from self._other_constants(argument, *variables.get(_text(argument), ()))

    def _other_constants(self, *nodes: Node) -> Iterator[Expected]:
        for part in _values(*nodes):
            owner, name = _constant(part) or ("", "")
            others = [other for other in self.constants.get(owner, ()) if other != name]
            if others:
                yield Expected(span=part.byte_range, sureness=Sureness.CONSTANT, other=f"{owner}.{others[0]}")


def _all(nodes: Iterable[Node], sureness: Sureness) -> Iterator[Expected]:
    return (Expected(span=node.byte_range, sureness=sureness) for node in nodes)


def _literals(*nodes: Node) -> Iterator[Node]:
    return (node for node in _values(*nodes) if _literal(node))


def _values(*nodes: Node) -> Iterator[Node]:
    """All that is compared with; what is given to the methods of an object may be put in, or be an index."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        if node.type not in ("lambda_expression", "array_access", "dimensions_expr") and not _of_an_object(node):
            waiting += reversed(node.children)


def _literal(node: Node) -> bool:
    return node.type in LITERALS and not (node.type == "character_literal" and b"\\" in _bytes(node))


def _begin(call: Node) -> Node:
    """Of a chain of calls, the first."""
    while call.type == "method_invocation" and (owner := call.child_by_field_name("object")):
        call = owner
    return call


def _plain_truth(node: Node) -> bool:
    """No comparison: to ask for its contrary would be a negated one, which fails as it must for a value that is equal
    to anything."""
    compared = node.type == "binary_expression" or _text(node.child_by_field_name("name")) == "equals"
    return not compared and node.type not in ("lambda_expression", "method_reference", "unary_expression")


def _of_an_object(node: Node) -> bool:
    owner = node.child_by_field_name("object") if node.type == "method_invocation" else None
    return owner is not None and not re.fullmatch(r"[A-Z]\w*", _text(owner))


def _variables(nodes: Iterable[Node]) -> Mapping[str, list[Node]]:
    """Name → what is put into it, at first and later: `expected = …`, `expected.add(…)`."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        match node.type:
            case "variable_declarator":
                name, values = node.child_by_field_name("name"), [node.child_by_field_name("value")]
            case "assignment_expression":
                name, values = node.child_by_field_name("left"), [node.child_by_field_name("right")]
            case "method_invocation":
                name, values = node.child_by_field_name("object"), list(_arguments(node))
            case _:
                continue
        found.setdefault(_text(name), []).extend(value for value in values if value is not None)
    return found


def _constant(node: Node) -> tuple[str, str] | None:
    owner, name = node.child_by_field_name("object"), node.child_by_field_name("field")
    if node.type != "field_access" or owner is None or name is None:
        return None
    named = re.fullmatch(r"[A-Z]\w*", _text(owner)), re.fullmatch(r"[A-Z][A-Z\d_]*", _text(name))
    return (_text(owner), _text(name)) if all(named) else None


def _annotations(method: Node) -> Iterator[Node]:
    for modifiers in method.children:
        if modifiers.type == "modifiers":
            yield from (node for node in modifiers.children if node.type in ("marker_annotation", "annotation"))


def _arguments(call: Node) -> tuple[Node, ...]:
    found = call.child_by_field_name("arguments")
    return tuple(node for node in found.named_children if "comment" not in node.type) if found else ()


def _bytes(node: Node | None) -> bytes:
    return (node.text or b"") if node else b""


def _text(node: Node | None) -> str:
    return _bytes(node).decode(errors="replace")
