"""The pages in a real browser: they sort, filter, open and print, ask for nothing, and run nothing of a model's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retrial.cli import compare
from retrial.reports import page
from retrial.store.runs import Run
from tests.parts import require
from tests.support import browsers, synthetic_run
from tests.support.browsers import Opened, opened
from tests.support.sides import side

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.real

TASKS = 60
WIDTHS = (390, 820, 1440)
ROWS = "[...document.querySelectorAll('#table tbody tr')]"
SHOWN = f"{ROWS}.filter((row) => !row.hidden).map((row) => row.cells[0].textContent)"
HOSTILE = """

<script>window.harm = 1; document.title = "harm"</script>
<img src=x onerror="window.harm = 2"> <a href="javascript:window.harm = 3">click</a>
[click](javascript:window.harm=4) ![x](http://127.0.0.1:9/x.png) <http://127.0.0.1:9/> [a]: javascript:window.harm=5
</pre></details></script><svg onload="window.harm = 6"></svg>
\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    require("browser", browsers.unavailable())
    with browsers.browser() as started:
        yield started


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose models say hostile things, with its page."""
    made, content = synthetic_run.write(tmp_path_factory.mktemp("home"), "many", TASKS, more=HOSTILE)
    page.write(made, content)
    return made


@pytest.fixture
def report(chromium: Browser, run: Run) -> Iterator[Opened]:
    found = opened(chromium, run.folder / "report.html")
    yield found
    assert found.complaints == []
    assert found.asked == []
    found.page.close()


def names(report: Opened) -> list[str]:
    found: list[str] = report.values(SHOWN)
    return found


@pytest.mark.smoke
def test_columns_sort_up_and_down_and_a_screen_reader_is_told(report: Opened) -> None:
    header = report.page.locator("#table th", has_text="Test time")
    header.locator("button").click()
    found = report.values(f"{ROWS}.map((row) => row.cells[9].dataset.v)")
    # What was not measured has no time, and is last whichever way.
    assert found[-4:] == [""] * 4
    seconds = [float(value) for value in found[:-4]]
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert report.values(f"{ROWS}.map((row) => row.cells[9].dataset.v)")[-4:] == [""] * 4
    up = names(report)
    report.page.locator("#table th", has_text="Instance").locator("button").click()
    assert names(report) == sorted(up)


def test_search_and_filters_narrow_the_table_together(report: Opened, run: Run) -> None:
    everything = len(names(report))
    assert everything == TASKS + 4
    report.page.get_by_label("Language", exact=True).select_option("rust")
    rust = names(report)
    assert rust
    assert all(name.startswith("rust_") for name in rust)
    report.page.get_by_label("Outcome", exact=True).select_option("resolved")
    resolved = names(report)
    assert 0 < len(resolved) < len(rust)
    assert report.page.locator("#matching").inner_text() == f"{len(resolved)} of {everything} shown"
    report.page.get_by_label("Search", exact=True).fill(resolved[0][-4:])
    assert names(report) == [resolved[0]]


@pytest.mark.smoke
def test_an_instance_opens_by_keyboard_and_shows_diff_tests_chat_and_log(report: Opened) -> None:
    button = report.page.locator("button.open").first
    button.focus()
    report.page.keyboard.press("Enter")
    detail = report.page.locator(".detail")
    detail.wait_for()
    assert button.get_attribute("aria-expanded") == "true"
    assert detail.locator("pre.diff .gi").count() > 0
    assert detail.locator("pre.diff .gd").count() > 0
    assert detail.locator(".tests li").count() > 3
    assert detail.locator(".message.assistant").count() > 0
    assert detail.locator("summary", has_text="Log").count() == 1
    report.page.keyboard.press("Enter")
    assert report.page.locator(".detail").count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def test_a_link_to_an_instance_opens_it(chromium: Browser, run: Run) -> None:
    wanted = sorted(path.stem for path in run.folder.glob("go_*.json"))[0]
    found = opened(chromium, run.folder / "report.html", fragment=f"#{wanted}")
    found.page.locator(".detail").wait_for()
    assert found.page.get_by_role("button", name=wanted, exact=True).get_attribute("aria-expanded") == "true"
    found.page.close()


def test_nothing_that_a_model_said_runs_loads_or_leads_anywhere(report: Opened) -> None:
    report.page.locator("button.open").first.click()
    detail = report.page.locator(".detail")
    detail.wait_for()
    report.values("document.querySelectorAll('.detail details').forEach((each) => (each.open = true))")
    assert report.values("typeof window.harm") == "undefined"
    assert "harm" not in report.page.title()
    assert detail.locator("a, img, script, svg, iframe, form, object, embed, style, link").count() == 0
    said = detail.locator(".message.assistant").first.inner_text()
    for text in ("<script>window.harm = 1", "javascript:window.harm=4", 'onerror="window.harm = 2"', "␛[31mred␛[0m"):
        assert text in said
    assert "⟨U+202E⟩gnp.exe" in said


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_or_overlaps_at_any_width(chromium: Browser, run: Run, width: int, dark: bool) -> None:
    found = opened(chromium, run.folder / "report.html", width=width, dark=dark)
    found.page.locator("button.open").first.click()
    found.page.locator(".detail").wait_for()
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert found.values(wider) == 0
    boxes = ".cards dd, .cards dt, h1, h2, .big, .facts dd, summary, .outcome, #table td, #table th"
    cut = f"""[...document.querySelectorAll('{boxes}')]
        .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
        .map((each) => each.textContent)"""
    assert found.values(cut) == []
    found.page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_serious_fault(chromium: Browser, run: Run, dark: bool) -> None:
    found = opened(chromium, run.folder / "report.html", dark=dark)
    found.page.locator("button.open").first.click()
    found.page.locator(".detail").wait_for()
    assert serious(found) == []
    found.page.close()


def test_it_prints_with_the_rows_and_without_the_controls(chromium: Browser, run: Run, tmp_path: Path) -> None:
    found = opened(chromium, run.folder / "report.html")
    found.page.emulate_media(media="print")
    assert not found.page.locator("form.filters").is_visible()
    assert found.page.locator("#table tbody tr").first.is_visible()
    found.page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    found.page.close()


@pytest.mark.smoke
def test_a_comparison_has_a_page_of_its_own(chromium: Browser, tmp_path: Path) -> None:
    run = Run(tmp_path, "compare--a--b")
    run.folder.mkdir(parents=True)
    content = compare.compared(run.name, [side("a", "+-" * 40), side("b", "+++-" * 20)])
    page.write_comparison(run, content)
    for dark in (False, True):
        found = opened(chromium, run.folder / "compare.html", width=390, dark=dark)
        assert content.pairs[0].sentence in found.page.locator(".verdict").first.inner_text()
        assert found.values("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert serious(found) == []
        assert (found.complaints, found.asked) == ([], [])
        found.page.close()


def serious(found: Opened) -> list[str]:
    """What axe finds that would keep people out."""
    from axe_playwright_python.sync_playwright import Axe

    faults = Axe().run(found.page).response["violations"]
    grave = (each for each in faults if each["impact"] in ("serious", "critical"))
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in grave]
