"""The page of two thousand instances with transcripts: how long it takes to write and to open, and how large it is; and
report.py when every verdict is known.

Seconds are CPU unless said otherwise. The runs are synthetic: as long as real ones, and scored by nobody.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from retrial.reports import page
from retrial.reports.records import Results
from retrial.store.runs import Run
from speed import scale
from tests.support import browsers, synthetic_run

NAVIGATION = "performance.getEntriesByType('navigation')[0].loadEventEnd"
LAID_OUT = "document.querySelector('#instances .scroll').style.contentVisibility === 'visible'"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3, help="how often the page is opened in the browser")
    parser.add_argument("--sandboxed", type=int, default=50, help="of those for report.py, how many reach a sandbox")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"RETRIAL_HOME": f"{folder}/home", "RETRIAL_CACHE": f"{folder}/cache"}
        run, results = synthetic_run.write(folder / "home", "synthetic", options.tasks)
        chats = sum(path.stat().st_size for path in run.folder.glob("*.md"))
        print(f"{options.tasks} instances, {chats / 1e6:.1f} MB of transcripts", flush=True)
        for title in ("first time", "again"):
            tell(title, run, results)
        if not browsers.unavailable():
            open_it(run.folder / "report.html", options)
        known(folder, options)


def tell(title: str, run: Run, results: Results) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    path = page.write(run, results)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert path
    print(f"report.html, {title}: {cpu:.1f} s (wall {wall:.1f}), {path.stat().st_size / 1e6:.1f} MB", flush=True)


def open_it(path: Path, options: argparse.Namespace) -> None:
    with browsers.browser() as chromium:
        for _ in range(options.rounds):
            found = browsers.opened(chromium, path)
            # A small page has been loaded before it is painted for the first time.
            wait_until(found, f"{PAINT} > 0 && {NAVIGATION} > 0")
            painted, loaded = found.values(PAINT) / 1000, found.values(NAVIGATION) / 1000
            wait_until(found, LAID_OUT)
            middle = found.page.locator("button.open").nth(options.tasks // 2)
            middle.scroll_into_view_if_needed()
            started = time.perf_counter()
            middle.click()
            found.page.locator(".detail").wait_for()
            clicked = time.perf_counter() - started
            print(
                f"opened in Chromium (wall): painted after {painted:.2f} s, all there after {loaded:.2f} s; "
                f"an instance opens in {clicked:.2f} s",
                flush=True,
            )
            found.page.close()


def wait_until(found: browsers.Opened, condition: str) -> None:
    """Ask again and again from outside: the page's content security policy forbids a condition that waits inside."""
    for _ in range(1000):
        if found.values(condition):
            return
        found.page.wait_for_timeout(20)
    raise AssertionError(f"it never came true: {condition}")


def known(folder: Path, options: argparse.Namespace) -> None:
    """Measure report.py, with its page, on a run whose verdicts are all in the cache."""
    bench = folder / "bench"
    scale.write_benchmark(bench, options.tasks)
    everything = scale.remember(bench, folder / "all.jsonl")
    with scale.model(options.sandboxed) as url:
        harness = ["harness.py", "-b", str(bench), "-m", "quick:whole", "--api-base", url, "--run", "known"]
        scale.went([*harness, "--turns", "1", "--reflections", "0", "--sandbox", "bwrap"])
    report = ["report.py", "known", "--sandbox", "bwrap"]
    scale.went(report)
    scale.tell("report.py, all verdicts known", scale.went(report))
    file = ["report.py", str(everything), *report[2:], "-b", str(bench)]
    scale.went(file)
    scale.tell("report.py FILE, all verdicts known", scale.went(file))


if __name__ == "__main__":
    main()
