"""Variables of Go's test files under other names.

A solution is in the package of its tests: it could empty a table of theirs, or fill it with what it returns itself.
What it cannot name it cannot change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from retrial.languages.canaries.syntax import bytes_of as text
from retrial.languages.canaries.syntax import nodes_of_type, spliced, walk
from retrial.languages.go.package import GoFile, sources_of_packages

if TYPE_CHECKING:
    from tree_sitter import Node


def renamed(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The same names for the same files: not for who reads this and them, but for who only knows the tests."""
    packages = sources_of_packages(files)
    read = {source.path for sources in packages for source in sources}
    if any(path.endswith("_test.go") and path not in read for path in files):
        # One that we cannot read may name the variables of another.
        return files
    after = dict(files)
    for sources in packages:
        everything = b"".join(source.text for source in sources)
        names = _variables(sources)
        new = {name: b"%s%s" % (name, _suffix(name, everything)) for name in names}
        for source in sources:
            after[source.path] = _replaced(source, new)
    return after


def _suffix(name: bytes, everything: bytes) -> bytes:
    return hashlib.sha256(name + b"\0" + everything).hexdigest()[:8].upper().encode()


def _variables(sources: Sequence[GoFile]) -> frozenset[bytes]:
    """Those of the package that are its own, and that no key of a struct is called like."""
    keys = {text(key) for source in sources for key in _keys(source.root)}
    declared = {text(name) for source in sources for name in _declared(source.root)}
    return frozenset(name for name in declared - keys - {b"_"} if name[:1].islower())


def _declared(root: Node) -> Iterator[Node]:
    for declaration in root.children:
        if declaration.type == "var_declaration":
            for spec in nodes_of_type("go", declaration, "var_spec"):
                # Not those in functions that are its value.
                if spec.parent and declaration in (spec.parent, spec.parent.parent):
                    yield from (child for child in spec.children if child.type == "identifier")


def _keys(root: Node) -> Iterator[Node]:
    for element in nodes_of_type("go", root, "keyed_element"):
        yield from (node for node in walk(element.children[0]) if node.type == "identifier")


def _replaced(source: GoFile, new: Mapping[bytes, bytes]) -> bytes:
    named = (node for node in nodes_of_type("go", source.root, "identifier") if text(node) in new)
    return spliced(source.text, (0, len(source.text)), ((node.byte_range, new[text(node)]) for node in named))
