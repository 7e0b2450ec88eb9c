"""Canaries for Rust: copies of `#[test]` functions in which a literal of what is expected is another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.candidates import NAME, Expected, Test, TestFile, candidates, surest
from retrial.languages.canaries.syntax import Span, bytes_of, field, line, parse, walk, walk_types, within

if TYPE_CHECKING:
    from tree_sitter import Node

PROGRAM = re.compile(r"tests/[^/]+\.rs")
WEAK = f"#[test]\nfn {NAME}() {{\n    assert_eq!(1, 2);\n}}\n\n"
WEAK_WITHOUT_EQ = WEAK.replace("assert_eq!(1, 2)", "assert!(1 > 2)")
SHARED = re.compile(rb"\b(?:fs|env)::|\bFile::|^(?:pub )?static\b|\bthread_local!", re.MULTILINE)
"""Tests that share files or state: one more of them might disturb the others."""
FEW = 5
"""Of the strong ones: some tests take long, and all copies are in the reference's first run."""
ALONE = b"global_allocator"
"""Where memory is counted, any test beside the others would disturb them."""
WANTED = re.compile(rb"expect|want", re.IGNORECASE)
STRINGS = ("string_literal", "raw_string_literal", "char_literal")
LITERALS = (*STRINGS, "integer_literal", "float_literal", "boolean_literal")
COPIED = re.compile(rb"#\[\s*(?:test|ignore\b.*)\s*\]", re.DOTALL)
"""Attributes with which a test is one that simply passes or fails."""
MACRO = re.compile(rb"\b(assert|assert_eq)!(?=\s*\()|\bvec!(?=\s*\[)")
"""What could be written without a macro."""
OWN_METHODS = frozenset(
    b"to_string to_owned to_vec into iter into_iter copied cloned clone collect as_bytes as_str as_slice as_ref".split()
)
OWN_TYPES = frozenset(b"String Vec HashMap HashSet BTreeMap BTreeSet VecDeque".split())
OWN_MACROS = (b"", b"concat")
"""The first is of what is no macro."""
PARTS = ("index_expression", "field_expression")
"""Of these, only the first part is a value."""
EXPECTED, PUT_IN, NOTHING = 0, 1, 2
"""What can be changed in a test: the least is the surest."""


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    """Of the test program with the most tests, among those whose tests share nothing."""
    programs = [(path, source) for path, source in sorted(files.items()) if PROGRAM.fullmatch(path)]
    found = [_file(path, source) for path, source in programs if ALONE not in source]
    found.sort(key=lambda file: (any(test.expected for test in file.tests), len(file.tests)), reverse=True)
    return candidates(found[:1], FEW)


def _file(path: str, source: bytes) -> TestFile:
    # Assertions as calls and vectors as arrays can be parsed; everything stays in its place.
    root = parse("rust", MACRO.sub(lambda found: (found[1] or b"").ljust(len(found[0])), source))
    helpers = dict(_helpers(root))
    copied = not SHARED.search(source)
    tests = [_test(function, helpers, source, copied=copied) for function in _functions(root)]
    # Those with something expected come first: what is put in may be changed to what nobody expects anything of.
    tests.sort(key=lambda test: test.expected[0].sureness if test.expected else NOTHING)
    weak = WEAK if b"assert_eq!" in source else WEAK_WITHOUT_EQ
    return TestFile(path=path, source=source, tests=tests, naming=Naming.SNAKE, weak=weak)


def _functions(root: Node) -> Iterator[Node]:
    """Tests that are compiled whatever the features are."""
    for node in walk(root):
        if node.type == "function_item" and any(bytes_of(each) == b"#[test]" for each in _attributes(node)):
            outer: Node | None = node
            while outer is not None and not any(b"cfg" in bytes_of(each) for each in _attributes(outer)):
                outer = outer.parent
            if outer is None and not node.has_error:
                yield node


def _attributes(node: Node) -> list[Node]:
    """With the comments between them."""
    found: list[Node] = []
    before = node.prev_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
        found.append(before)
        before = before.prev_sibling
    while found and found[-1].type != "attribute_item":
        found.pop()
    return found


def _test(function: Node, helpers: Mapping[bytes, int], source: bytes, *, copied: bool) -> Test:
    attributes = _attributes(function)
    name, body = field(function, "name"), field(function, "body")
    plain = all(COPIED.fullmatch(bytes_of(each)) for each in attributes if each.type == "attribute_item")
    expected: list[Expected] = []
    if copied and plain and body is not None and field(function, "return_type") is None:
        expected = [Expected(span=span, sureness=EXPECTED) for span in _expected(body, helpers)]
        expected = expected or [Expected(span=span, sureness=PUT_IN) for side in _sides(body) for span in _spans(side)]
    return Test(
        whole=(line(source, (attributes[-1] if attributes else function).start_byte), function.end_byte),
        name=(name or function).byte_range,
        expected=surest(expected),
        unsure=not expected or expected[0].sureness == PUT_IN,
        scope=function.parent.start_byte if function.parent else 0,
    )


def _helpers(root: Node) -> Iterator[tuple[bytes, int]]:
    """Functions of the file that are told what to expect, and as which of their arguments."""
    for node in root.children:
        for place, parameter in enumerate(within(node, "parameters") if node.type == "function_item" else ()):
            if WANTED.search(bytes_of(field(parameter, "pattern"))):
                yield bytes_of(field(node, "name")), place


def _expected(body: Node, helpers: Mapping[bytes, int]) -> Iterator[Span]:
    sides = [side for side in _sides(body) if _ours(side)]
    wanted = set()
    for side in sides:
        yield from _spans(side)
        wanted |= {bytes_of(node) for node in walk_types(side, "identifier")}
    yield from _definitions(body, {name for name in wanted if not _used_elsewhere(body, name, sides)})
    for node in walk_types(body, "call_expression"):
        place = helpers.get(bytes_of(field(node, "function")))
        if place is not None:
            for argument in within(node, "arguments")[place:][:1]:
                yield from _spans(argument)


def _definitions(body: Node, own: set[bytes]) -> Iterator[Span]:
    """Of variables that hold what is expected, or are called so; and of what is put into them."""
    for node in walk(body):
        value = field(node, "value") if node.type == "let_declaration" else None
        if value is not None:
            name = bytes_of(field(node, "pattern"))
            if WANTED.search(name) or (name in own and _ours(value)):
                own = own | {name}
                yield from _spans(value)
        receiver = node.named_children[0] if node.type == "call_expression" else None
        method = receiver is not None and receiver.type == "field_expression" and _is_statement(node)
        if receiver is not None and method and bytes_of(receiver).partition(b".")[0] in own:
            yield from _spans(node.named_children[-1])


def _used_elsewhere(body: Node, name: bytes, sides: Sequence[Node]) -> bool:
    """Beyond these, and what is done to the variable itself: then it is put in as well."""
    for node in walk_types(body, "identifier"):
        if bytes_of(node) != name:
            continue
        expected = any(side.start_byte <= node.start_byte < side.end_byte for side in sides)
        parent = node.parent
        itself = parent is not None and (
            parent.type in ("let_declaration", "mut_pattern", "for_expression")
            or (parent.type == "field_expression" and _is_statement(parent.parent))
        )
        if not expected and not itself:
            return True
    return False


def _is_statement(node: Node | None) -> bool:
    return bool(node and node.parent and node.parent.type == "expression_statement")


def _sides(body: Node) -> Iterator[Node]:
    """Of `assert_eq!` and of the `==` in an `assert!`; the second, which rather is what is expected, comes first."""
    for node in walk_types(body, "call_expression"):
        called, arguments = bytes_of(field(node, "function")), within(node, "arguments")
        if called == b"assert_eq" and len(arguments) > 1:
            yield from (arguments[1], arguments[0])
        elif called == b"assert" and arguments:
            equal = bytes_of(field(arguments[0], "operator")) == b"=="
            yield from reversed(arguments[0].named_children if equal else arguments[:1])


def _ours(side: Node) -> bool:
    """Nothing but literals, variables and what the language itself brings: no call of the solution."""
    return all(map(_own, walk(side)))


def _own(node: Node) -> bool:
    """No call, or one of the language's own."""
    if node.type != "call_expression":
        return node.type != "index_expression" and bytes_of(field(node, "macro")) in OWN_MACROS
    function = field(node, "function")
    if function is not None and function.type == "generic_function":
        function = field(function, "function")
    if function is not None and function.type == "field_expression":
        function = field(function, "field")
    kind, _, last = bytes_of(function).rpartition(b"::")
    return last in OWN_METHODS or last[:1].isupper() or kind.rpartition(b"::")[2] in OWN_TYPES


def _spans(value: Node) -> Iterator[Span]:
    """Of the literals that are values: not an index, a length, a field or a character that is written as an escape."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node.type in PARTS:
            waiting.append(node.children[0])
        elif node.type not in LITERALS:
            # Behind a semicolon is the length of an array.
            waiting += reversed(list(takewhile(lambda child: child.type != ";", node.children)))
        elif node.type != "char_literal" or b"\\" not in bytes_of(node):
            yield node.byte_range
