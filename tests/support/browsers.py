"""A real browser, for pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
# As root it has no sandbox of its own; and it is to ask nobody for anything.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


def unavailable() -> str:
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright is missing (requirements-dev.txt)"
    return "" if _executable() else "there is no Chromium: apt-get install chromium"


def _executable() -> str:
    return next((path for name in NAMES if (path := shutil.which(name))), "")


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_executable(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


@dataclass(slots=True, kw_only=True)
class Opened:
    """A page from disk, and all that it did which no page of ours may do."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    """Of its console, and errors of its script."""
    asked: list[str] = field(default_factory=list)
    """For anything but the page itself."""

    def values(self, script: str) -> Any:
        return self.page.evaluate(script)


def opened(chromium: Browser, path: Path, *, width: int = 1280, dark: bool = False, fragment: str = "") -> Opened:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    found, address = Opened(page=page), path.resolve().as_uri()
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.asked.append(request.url) if request.url != address else None)
    page.goto(address + fragment)
    return found
