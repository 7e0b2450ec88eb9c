"""Numbers on a page: each is looked up in results.json, and says where it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup


def count(value: Any) -> str:
    return f"{value:,}"


def size(value: Any) -> str:
    """Of a list."""
    return count(len(value))


def number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def percent(value: Any) -> str:
    return f"{value:.1f} %"


def usd(value: Any) -> str:
    digits = 2 if value >= 10 else 4
    return f"{value:,.{digits}f} USD"


def dollars(value: Any) -> str:
    """In a column that says so."""
    return usd(value).removesuffix(" USD")


def each(value: Any) -> str:
    """USD for one of something; there may be none."""
    return usd(value)


def seconds(value: Any) -> str:
    if value < 120:
        return f"{value:.1f} s"
    minutes, hours = value / 60, value / 3600
    return f"{minutes:.1f} min" if minutes < 120 else f"{hours:.1f} h"


def points(value: Any) -> str:
    return f"{value:+.1f}"


def chance(value: Any) -> str:
    return f"= {value:.2g}" if value >= 0.0001 else "< 0.0001"


WAYS: Mapping[str, Callable[[Any], str]] = {
    way.__name__: way for way in (count, size, number, percent, usd, dollars, each, seconds, points, chance)
}
UNKNOWN = {"usd": "unknown"}
"""What stands for null; for other ways a dash."""


def shown(value: Any, way: str) -> str:
    return UNKNOWN.get(way, "–") if value is None else WAYS[way](value)


class Numbers:
    """Of one results.json; `data-from` is a JSON pointer into it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
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
