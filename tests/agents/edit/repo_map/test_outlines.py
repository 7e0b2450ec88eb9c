"""What a file defines, in every language that maps have outlines of."""

from __future__ import annotations

import pytest

from retrial.agents.edit.repo_map import grammars, outlines
from retrial.agents.edit.repo_map.grammars import GRAMMARS

SOURCES = {
    "a.py": (
        '''
@final
class Cart(Base):  # a comment
    """Of goods."""
    def add(self, item,
            count=1):  # another
        def inner(): pass

LIMIT = 3
''',
        ["class Cart(Base)", "  def add(self, item, count=1)", "    def inner()", "LIMIT"],
    ),
    "a.js": (
        """
class Cart extends Base {
  add(item) { return 1 }
}
const total = (cart) => {
  return 2
}
module.exports.clear = function (cart) {}
""",
        ["class Cart extends Base", "  add(item)", "total = (cart) =>", "module.exports.clear = function (cart)"],
    ),
    "a.ts": (
        """
export interface Item { price: number }
export abstract class Cart<T> {
  abstract add(item: T): void;
}
""",
        ["interface Item", "abstract class Cart<T>", "  abstract add(item: T): void;"],
    ),
    "a.tsx": (
        """
export function View(props: Props) {
  return <b>{props.x}</b>
}
""",
        ["function View(props: Props)"],
    ),
    "a.go": (
        """
package a

type Cart struct {
	n int
}

func (c *Cart) Add(n int) error {
	return nil
}

const Max = 3
""",
        ["Cart struct", "func (c *Cart) Add(n int) error", "Max"],
    ),
    "a.rs": (
        """
pub trait Priced {
    fn price(&self) -> u32;
}
impl<T> Priced for Cart<T> {
    fn price(&self) -> u32 { 1 }
}
macro_rules! cart { () => {} }
""",
        [
            "pub trait Priced",
            "  fn price(&self) -> u32;",
            "impl<T> Priced for Cart<T>",
            "  fn price(&self) -> u32",
            "macro_rules! cart { () => {} }",
        ],
    ),
    "A.java": (
        """
@Deprecated
public class A<T> {
  public A(int x) {}
  @Override public int add(int x)
      throws E { return x; }
}
record P(int x) {}
""",
        ["public class A<T>", "  public A(int x)", "  public int add(int x) throws E", "record P(int x)"],
    ),
    "a.c": (
        """
#define MAX 3
typedef struct cart { int n; } cart_t;
static char *name(cart_t *c) { return 0; }
int total(void);
""",
        [
            "#define MAX",
            "typedef struct cart { int n; } cart_t;",
            "  struct cart",
            "static char *name(cart_t *c)",
            "int total(void);",
        ],
    ),
    "a.hpp": (
        """
namespace shop {
template <class T> class Cart : Base {
 public:
  void add(T item);
  T& first() const { return x; }
};
}
int shop::Cart<int>::size() { return 1; }
""",
        [
            "namespace shop",
            "  class Cart : Base",
            "    void add(T item);",
            "    T& first() const",
            "int shop::Cart<int>::size()",
        ],
    ),
    "a.rb": (
        """
module Shop
  class Cart < Base
    MAX = 3
    def self.build(x)
      1
    end
    def add(item) = 1
  end
end
""",
        ["module Shop", "  class Cart < Base", "    MAX", "    def self.build(x)", "    def add(item)"],
    ),
    "a.php": (
        """<?php
namespace Shop;
#[Attr(1)]
final class Cart extends Base {
  public function add(int $n): int { return $n; }
}
function total($cart) { return 1; }
""",
        ["final class Cart extends Base", "  public function add(int $n): int", "function total($cart)"],
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_an_outline_has_the_heads_of_all_definitions_each_below_what_it_lies_in(path: str) -> None:
    text, heads = SOURCES[path]
    found = outlines.read(path, text.encode())
    assert ["  " * one.depth + one.head for one in found.definitions] == heads


def test_every_grammar_has_an_example_here() -> None:
    assert {grammars.of(path) for path in SOURCES} == set(GRAMMARS)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\0class", b"def f(:\n  ((((", b"class " * 2000, b"def gr\xc3\xb6\xc3\x9fe(): pass"]
)
def test_what_is_no_program_has_an_outline_all_the_same(content: bytes) -> None:
    for path in SOURCES:
        outlines.read(path, content)


def test_a_head_is_one_line_of_bounded_length() -> None:
    arguments = ",\n    ".join(f"argument_{number}" for number in range(100))
    (one,) = outlines.read("a.py", f"def f(\n    {arguments}\n): pass\n".encode()).definitions
    assert one.head.startswith("def f( argument_0, argument_1,")
    assert len(one.head) == outlines.LONGEST


def test_words_are_names_and_what_they_are_made_of() -> None:
    assert set(outlines.terms("HTTPServer get_query_sets __init__ _")) == {
        "http", "server", "httpserver", "get", "query", "set", "get_query_sets", "init",
    }  # fmt: skip
