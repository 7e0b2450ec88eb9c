"""What a page shows. Texts that others wrote: everything visible, nothing obeyed, none too long.

Numbers: each is looked up in results.json, and says where it was found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from pygments.lexer import Lexer

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
"""Where Unicode shows control characters: ␛ for what begins a terminal's commands."""

LEADING = ("link", "image", "autolink", "html_inline", "html_block", "reference")
"""Rules that are off: links and pictures stay text. A page must not load anything."""


def visible(text: str) -> str:
    """With signs for what nobody would see, or what would turn a line around."""
    return _UNSEEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return f"⟨U+{code:04X}⟩"


def finalize(value: object) -> object:
    """Of everything that a template prints."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class TextAllowance:
    """How much of one instance's texts the page may hold: of two thousand, all of it would be too much."""

    def __init__(self, each: int, total: int) -> None:
        self._each = each
        self._left = total

    def cut(self, text: str) -> str:
        """Both ends of it, where it is too long, and how much is missing."""
        most = max(200, min(self._each, self._left))
        self._left -= min(len(text), most)
        if len(text) <= most:
            return text
        half = most // 2
        return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def preformatted(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(escape(visible(text)))


def render_reply(text: str) -> Markup:
    """Return what a model wrote as HTML: its Markdown is shown, and none of it can run, load or lead anywhere."""
    return Markup(_reader().render(visible(text)))


@functools.lru_cache(maxsize=16)
def render_diff(text: str) -> Markup:
    """Colour what a patch adds and removes; a chosen patch is shown twice, also where it was made."""
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


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _usd(value: Any) -> str:
    return f"{value:,.{2 if value >= 10 else 4}f} USD"


def _seconds(value: Any) -> str:
    if value < 120:
        return f"{value:.1f} s"
    minutes, hours = value / 60, value / 3600
    return f"{minutes:.1f} min" if minutes < 120 else f"{hours:.1f} h"


WAYS: Mapping[str, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,}",
    # Of a list.
    "size": lambda value: f"{len(value):,}",
    "number": _number,
    "percent": lambda value: f"{value:.1f} %",
    "usd": _usd,
    # In a column that says so.
    "dollars": lambda value: _usd(value).removesuffix(" USD"),
    # USD for one of something; there may be none.
    "each": _usd,
    "seconds": _seconds,
    "points": lambda value: f"{value:+.1f}",
    "chance": lambda value: f"= {value:.2g}" if value >= 0.0001 else "< 0.0001",
}
UNKNOWN = {"usd": "unknown"}
"""What stands for null; for other ways a dash."""


def shown(value: Any, way: str) -> str:
    return UNKNOWN.get(way, "–") if value is None else WAYS[way](value)


class Numbers:
    """Of one results.json; `data-from` is a JSON pointer into it."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __call__(self, way: str, *path: str | int) -> Markup:
        """`n("percent", "rate", "percent")`; what is not there is an error of the template's."""
        where = "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
        return Markup('<span class="n" data-way="{}" data-from="{}">{}</span>').format(
            way, where, shown(self.value(*path), way)
        )

    def value(self, *path: str | int) -> Any:
        found: Any = self._content
        for step in path:
            found = found[step]
        return found
