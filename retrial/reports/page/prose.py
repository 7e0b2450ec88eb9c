"""What a model wrote, as HTML: its Markdown is shown, and none of it can run, load or lead anywhere."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from retrial.reports.page.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from pygments.lexer import Lexer

LEADING = ("link", "image", "autolink", "html_inline", "html_block", "reference")
"""Rules that are off: links and pictures stay text. A page must not ask anybody for anything."""


def reply(text: str) -> Markup:
    return Markup(_reader().render(visible(text)))


@functools.lru_cache(maxsize=16)
def diff(text: str) -> Markup:
    """With colours for what is added and removed; a chosen patch is there twice, also where it was made."""
    from pygments.token import STANDARD_TYPES

    # Pygments' own way of writing HTML takes three times as long: it also knows about line numbers and links. What is
    # escaped before it is looked at has the same first letters in its lines.
    marked = (
        f'<span class="{STANDARD_TYPES.get(kind, "")}">{part}</span>'
        for kind, part in _lexer().get_tokens(str(escape(visible(text))))
    )
    return Markup(f'<pre class="diff">{"".join(marked)}</pre>')


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).disable(list(LEADING))
    # A model's headings are no chapters of this page.
    for level in ("open", "close"):
        reader.add_render_rule(f"heading_{level}", _no_heading)
    return reader


def _no_heading(_self: object, tokens: object, place: int, *_rest: object) -> str:
    opening = tokens[place].nesting == 1  # type: ignore[index]
    return '<p class="heading">' if opening else "</p>\n"


@functools.cache
def _lexer() -> Lexer:
    from pygments.lexers import DiffLexer

    lexer: Lexer = DiffLexer(stripnl=False)
    return lexer
