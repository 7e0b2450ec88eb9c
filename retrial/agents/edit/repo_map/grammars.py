"""The languages that a map has outlines of: one row each, with all that is special about it.

A query marks whole definitions and their names. What follows a definition's head (its body, or the value of a constant)
is cut off later, so a query need not say where that begins.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from importlib import metadata
from posixpath import splitext
from typing import TYPE_CHECKING

from retrial.system.console import say

if TYPE_CHECKING:
    from tree_sitter import Language, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    package: str
    suffixes: str
    definitions: str
    """A query that captures `@definition` and `@name`."""
    entry: str = "language"
    """What the package calls its grammar."""


def _named(kinds: str) -> str:
    """Definitions that have their name in the field `name`."""
    return " ".join(f"({kind} name: (_) @name) @definition" for kind in kinds.split())


def _functions(kinds: str, through: str) -> str:
    """Of C and C++, where a function's name is in its declarator, which lies below what its result is declared by."""
    plain = "(function_declarator declarator: (_) @name)"
    ways = " ".join([plain, *(f"({way} {plain})" for way in through.split())])
    return " ".join(f"({kind} declarator: [{ways}]) @definition" for kind in kinds.split())


_SCRIPT = (
    _named("function_declaration generator_function_declaration class_declaration method_definition")
    + """
    (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (class)]) @definition
    (program (lexical_declaration (variable_declarator name: (identifier) @name) @definition))
    (program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition)))
    (assignment_expression left: (member_expression property: (_) @name)
        right: [(arrow_function) (function_expression) (class)]) @definition
    (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @definition
    """
)
_TYPES = _named(
    "abstract_class_declaration interface_declaration type_alias_declaration enum_declaration "
    "function_signature method_signature abstract_method_signature internal_module"
)
_STRUCTURES = """
    (struct_specifier name: (_) @name body: (_)) @definition
    (enum_specifier name: (_) @name body: (_)) @definition
    (union_specifier name: (_) @name body: (_)) @definition
    (type_definition declarator: (type_identifier) @name) @definition
    (preproc_def name: (_) @name) @definition
    (preproc_function_def name: (_) @name) @definition
"""

GRAMMARS = (
    Grammar(
        package="tree-sitter-python",
        suffixes=".py .pyi .pyx .pxd",
        definitions=_named("class_definition function_definition")
        + "(module (expression_statement (assignment left: (identifier) @name) @definition))",
    ),
    Grammar(
        package="tree-sitter-javascript",
        suffixes=".js .jsx .mjs .cjs",
        definitions=_SCRIPT,
    ),
    Grammar(
        package="tree-sitter-typescript",
        entry="language_typescript",
        suffixes=".ts .mts .cts",
        definitions=_SCRIPT + _TYPES,
    ),
    Grammar(
        package="tree-sitter-typescript",
        entry="language_tsx",
        suffixes=".tsx",
        definitions=_SCRIPT + _TYPES,
    ),
    Grammar(
        package="tree-sitter-go",
        suffixes=".go",
        definitions=_named("function_declaration method_declaration type_spec type_alias method_elem")
        + """
        (source_file (const_declaration (const_spec name: (_) @name) @definition))
        (source_file (var_declaration (var_spec name: (_) @name) @definition))
        """,
    ),
    Grammar(
        package="tree-sitter-rust",
        suffixes=".rs",
        definitions=_named(
            "function_item function_signature_item struct_item enum_item union_item trait_item "
            "mod_item const_item static_item type_item macro_definition"
        )
        + "(impl_item type: (_) @name) @definition",
    ),
    Grammar(
        package="tree-sitter-java",
        suffixes=".java",
        definitions=_named(
            "class_declaration interface_declaration enum_declaration record_declaration "
            "annotation_type_declaration method_declaration constructor_declaration"
        ),
    ),
    Grammar(
        package="tree-sitter-c",
        suffixes=".c",
        definitions=_functions("function_definition declaration", through="pointer_declarator") + _STRUCTURES,
    ),
    Grammar(
        # Headers too: its grammar reads nearly all of C.
        package="tree-sitter-cpp",
        suffixes=".h .hh .hpp .hxx .cc .cpp .cxx .ipp",
        definitions=_functions(
            "function_definition declaration field_declaration", through="pointer_declarator reference_declarator"
        )
        + _STRUCTURES
        + "(class_specifier name: (_) @name body: (_)) @definition"
        + _named("namespace_definition alias_declaration concept_definition"),
    ),
    Grammar(
        package="tree-sitter-ruby",
        suffixes=".rb .rake .gemspec",
        definitions=_named("class module method singleton_method") + "(assignment left: (constant) @name) @definition",
    ),
    Grammar(
        package="tree-sitter-php",
        entry="language_php",
        suffixes=".php",
        definitions=_named(
            "class_declaration interface_declaration trait_declaration enum_declaration "
            "function_definition method_declaration"
        )
        + "(const_declaration (const_element (name) @name) @definition)",
    ),
)
_BY_SUFFIX = {suffix: grammar for grammar in GRAMMARS for suffix in grammar.suffixes.split()}


def of(path: str) -> Grammar | None:
    return _BY_SUFFIX.get(splitext(path)[1])


@dataclass(frozen=True, slots=True)
class Loaded:
    language: Language
    definitions: Query
    version: str
    """What reads a file with it."""


def load(path: str) -> Loaded | None:
    """Return what reads a file of this name; None where nothing can."""
    grammar = of(path)
    return _loaded(grammar) if grammar else None


@functools.cache
def _loaded(grammar: Grammar) -> Loaded | None:
    """None, and a word about it, where the package is not there: other languages have their outlines all the same."""
    try:
        from tree_sitter import Language, Query

        package = importlib.import_module(grammar.package.replace("-", "_"))
    except ImportError as error:
        say(f"No outlines of {grammar.suffixes} files in maps: {error}; pip install tree-sitter {grammar.package}")
        return None
    language = Language(getattr(package, grammar.entry)())
    version = f"{grammar.package} {metadata.version(grammar.package)} {grammar.entry}"
    return Loaded(language, Query(language, grammar.definitions), version)
