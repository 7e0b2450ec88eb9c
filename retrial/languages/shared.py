"""What the languages share: toolchains of the host, which some sandboxes show as they are, script steps, references."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from retrial.errors import TreeError
from retrial.language import Suite

SECONDS = 30.0
ANNOUNCE_BUILD = "echo '== build'\n"
ANNOUNCE_TEST = "echo '== test'\n"


def missing(tools: Iterable[str], package: str) -> str:
    """One sentence when a program is not on the PATH."""
    gone = [tool for tool in tools if not shutil.which(tool)]
    return f"'{gone[0]}' is not on the PATH: install {package}, or use Docker." if gone else ""


def say(*command: str) -> str:
    """What a tool prints about itself; empty when it fails. Not in the folder of now, which may have settings of it."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip() or done.stderr.strip()) if done.returncode == 0 else ""


def folders(*paths: str) -> tuple[tuple[str, str], ...]:
    """Those that are there and not in /usr, which every sandbox shows, each bound to its own place."""
    found = sorted({path for path in paths if path and os.path.isdir(path) and not Path(path).is_relative_to("/usr")})
    return tuple((path, path) for path in found)


def write_script(suite: Suite, *, settings: str, lint: str, run: str) -> str:
    """Return the script of a check. If `lint`, which looks at the solution alone, complains, nothing else is run."""
    if suite.command:
        return settings + suite.command
    step = f"""\
echo '== lint'
lint="$RETRIAL_REPORTS/lint.txt"
( {lint} ) >"$lint" 2>&1 || {{ status=$?; cat "$lint" >&2; exit $status; }}
rm -f "$lint"
"""
    return settings + ("" if suite.hidden else step) + run


def drop_parts(lines: Iterable[str], begins: Callable[[str], bool | None]) -> Iterator[str]:
    """Yield the lines that are not in a part to be left out.

    `begins` says whether a line begins such a part (True), another one (False) or none.
    """
    inside = False
    for line in lines:
        about = begins(line)
        inside = inside if about is None else about
        if not inside:
            yield line


def pair_in_order(solution: tuple[str, ...], example: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Let the first reference file stand for the first solution file, and so on."""
    if len(solution) != len(example):
        raise TreeError(f"{len(example)} reference files cannot stand for {len(solution)} solution files.")
    return dict(zip(solution, example.values(), strict=True))
