"""What people must not find written down: passwords in addresses, keys in what is sent along."""

from __future__ import annotations

import re

HIDDEN = "***"

_IN_AN_ADDRESS = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_NAMED = re.compile(
    r'("[^"]*(?:key|token|secret|password|authorization)"\s*:\s*)"(?:[^"\\]|\\.)*"', re.IGNORECASE | re.DOTALL
)
"""In JSON: text whose name ends in one of these words."""


def hidden(text: str) -> str:
    """The text, an address, a JSON object or words that hold such, as it may be shown and kept."""
    return _NAMED.sub(rf'\1"{HIDDEN}"', _IN_AN_ADDRESS.sub(HIDDEN, text))
