"""Charts as SVG inside the page, drawn by pygal; colours are the page's own, for light and dark."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from retrial.reports.analysis.stats import Rate

ROW = 34
"""Height of one bar."""
FRAME = 96
WIDTH = 760

Bar = float | Mapping[str, float | Mapping[str, float | None] | None]
"""Its value alone, or with its interval."""


def bars(name: str, labels: Sequence[str], series: Mapping[str, Sequence[Bar]], *, stacked: bool = False) -> Markup:
    """Lying bars in percent, one for each label; several series stand on each other."""
    chart = _chart(
        "HorizontalStackedBar" if stacked else "HorizontalBar",
        len(labels) * ROW + FRAME,
        range=(0, 100),
        show_legend=len(series) > 1,
        legend_at_bottom=True,
        # It draws from below; the first is to be on top, as in the table.
        x_labels=[_short(label) for label in reversed(labels)],
        value_formatter=lambda value: f"{value:.0f} %",
    )
    for title, values in series.items():
        chart.add(title, list(reversed(values)))
    return _svg(chart, name)


def interval(rate: Rate) -> Bar:
    """A bar with the range it may be in; none for nothing measured."""
    if not rate.of:
        return {"value": 0.0}
    return {"value": rate.percent, "ci": {"low": rate.low, "high": rate.high}}


def divided(name: str, labels: Sequence[str], percents: Sequence[float], first: Sequence[float | None]) -> Markup:
    """One bar each, divided at what passed on the first turn, where that is known."""
    pairs = [(whole, None if turn is None else min(turn, whole)) for whole, turn in zip(percents, first, strict=True)]
    series = {
        "on the first turn": [turn or 0.0 for _, turn in pairs],
        "on a later turn or try": [0.0 if turn is None else whole - turn for whole, turn in pairs],
        "on a turn that nobody knows": [whole if turn is None else 0.0 for whole, turn in pairs],
    }
    if None not in first:
        del series["on a turn that nobody knows"]
    return bars(name, labels, series, stacked=True)


def points(name: str, found: Mapping[str, Sequence[tuple[float, float | None]]], unit: str) -> Markup:
    """Percent over what it took; several points of one name are joined."""
    most = max(x for places in found.values() for x, _ in places)
    chart = _chart(
        "XY",
        380 + 24 * (len(found) // 2),
        range=(0, 100),
        xrange=(0, most * 1.05),
        dots_size=5,
        legend_at_bottom=True,
        x_title=unit,
        y_title="% resolved",
        show_legend=True,
        value_formatter=lambda value: f"{value:.0f} %",
        x_value_formatter=_rounded,
    )
    for title, places in found.items():
        chart.add(_short(title), [tuple(place) for place in places], stroke=len(places) > 1)
    return _svg(chart, name)


def _rounded(value: float) -> str:
    """Short enough for an axis."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g}"


@functools.cache
def _pygal() -> Any:
    import pygal

    # It hangs a finder for its plug-ins into Python's imports, of a kind that every later import warns of.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]
    return pygal


def _chart(kind: str, height: int, **more: Any) -> Any:
    """One of pygal's, with what all of ours have in common."""
    style = _pygal().style.Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--soft)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        colors=tuple(f"var(--chart-{number})" for number in range(1, 7)),
        ci_colors=("var(--ink)",) * 6,
        font_family="inherit",
        label_font_size=13,
        major_label_font_size=13,
        legend_font_size=13,
        title_font_size=13,
        opacity="1",
        opacity_hover="1",
        transition="0s",
    )
    return getattr(_pygal(), kind)(
        style=style,
        width=WIDTH,
        height=height,
        margin=8,
        margin_right=40,
        js=(),
        disable_xml_declaration=True,
        show_y_guides=True,
        y_labels_major_every=1,
        truncate_label=-1,
        truncate_legend=-1,
        no_data_text="",
        **more,
    )


def _svg(chart: Any, name: str) -> Markup:
    # Its own name for itself is a random one: the same results are the same page.
    chart.uuid = name
    text = str(chart.render(is_unicode=True))
    text = re.sub(r"(?s)<script.*?</script>|<!--.*?-->|<title>[^<]*</title>", "", text)
    # Titles would say a bar's place as if it were its value. What a chart shows is in a table beside it.
    return Markup(text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1))


def _short(label: str) -> str:
    return label if len(label) <= 40 else f"{label[:24]}…{label[-15:]}"
