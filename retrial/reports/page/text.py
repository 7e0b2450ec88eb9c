"""Texts that others wrote, as a page may show them: everything visible, nothing obeyed, none too long."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
"""Where Unicode shows control characters: ␛ for what begins a terminal's commands."""


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


class Allowance:
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
