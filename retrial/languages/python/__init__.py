"""Python: pytest, JUnit XML, ruff."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from retrial.language import Language, Suite
from retrial.languages import shared
from retrial.languages.python import toolchain
from retrial.system import host
from retrial.system.files import scratch_folder

# Through the environment, so that a task's own test command leaves a report as well.
SETTINGS = """\
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
export PYTEST_ADDOPTS="-p no:cacheprovider --junitxml=$RETRIAL_REPORTS/junit.xml"
"""

# Syntax errors are always reported; the rest is what cannot work at run time either: undefined names,
# `return` outside a function and their kin. Style is none of our business.
LINT_RULES = "F821,F822,F823,F701,F702,F704,F706,F707,F404,PLE0117"
# Each byte of a file may be an error of its own, and a megabyte of them takes ruff 3 GB.
LINT_MEMORY_MB = 1024
LINT_SECONDS = 60.0
LINT_BYTES = 5_000_000
TOO_MUCH = "The edited files have more errors than can be listed, or are too large to be looked at."


# Files that pytest, the interpreter or an import of the standard library would pick up by their name alone.
MODULES = ("__init__", "conftest", "pytest", "_pytest", "pluggy", "setup", "sitecustomize", "usercustomize")
RESERVED = tuple(f"{module}.py" for module in (*MODULES, *sorted(sys.stdlib_module_names)))

SUSPICIOUS = (
    (r"\bos\s*\.\s*(_exit|kill|killpg|fork|abort|exec[lv]\w*|spawn\w+|posix_spawn)\b", "ends or starts processes"),
    (r"\b_exit\b|\bsys\s*\.\s*exit\b|\bSystemExit\b|\b(import|from)\s+atexit\b", "ends the process"),
    (r"\b(import|from)\s+(ctypes|gc|linecache|signal|socket|urllib|multiprocessing)\b", "reaches beyond a solution"),
    (r"\b(import|from)\s+(_pytest|pytest|pluggy|unittest|doctest|conftest)\b", "imports a test runner"),
    (r"\b(import|from)\s+(\w+_test|test_\w+)\b|\b\w+_test\.py\b|\btest_\w+\.py\b", "names the tests"),
    (
        r"\b(_getframe|currentframe|getouterframes|f_back|f_locals|tb_frame|settrace|setprofile)\b",
        "looks at its caller",
    ),
    (r"\binspect\s*\.\s*(stack|trace)\b", "looks at its caller"),
    (r"\bsys\s*\.\s*modules\b|__subclasses__|\bimport\s+builtins\b", "reaches into what others have loaded"),
    (
        r"\bassert[A-Z]\w+|\b(AssertionError|TestCase|runtest|makereport|junit\w*|RETRIAL\w*)\b",
        "names what tests are made of",
    ),
    (r"\bdef\s+__(eq|ne)__\b|\b__eq__\s*=", "says itself what it is equal to"),
    (r"(?<![.\w])(exec|eval|__import__)\s*\(", "runs text as code"),
    (r"/proc/|/dev/fd|__pycache__|\.pyc\b", "names files that are not the solution's"),
)
"""Of lines in a solution, as few as can be among honest ones."""


def make() -> Language:
    return Language(
        name="python",
        minimum="3.8",
        suffixes=(".py",),
        tests=("test_*.py", "*_test.py"),
        protected_globs=RESERVED,
        result_parser="languages.junit",
        command_parser="languages.junit",
        tools={"python3": "python3 --version", "pytest": "python3 -m pytest --version"},
        toolchain=toolchain.toolchain,
        script=script,
        reference=shared.pair_in_order,
        lint=lint,
        canaries="languages.python.canary",
        suspicious=SUSPICIOUS,
        error_line_pattern=r"^E   +\w*(Error|Exception)\b|^\w*Error: ",
    )


def script(suite: Suite) -> str:
    tests = shlex.join(suite.tests)
    if suite.hidden:
        # Isolated mode, no configuration, no conftest, no plugins: nothing but the test files says how they are run.
        command = f"python3 -I -m pytest -v -c /dev/null --rootdir=. --noconftest {tests}"
    else:
        command = f"python3 -m pytest -xvs {tests}"
    return SETTINGS + (suite.command or command)


def lint(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    changed = {path for path in after if path.endswith(".py") and after[path] != before.get(path)}
    if not changed:
        return ()
    with scratch_folder() as folder:
        found = _ruff(
            folder, before={p: before[p] for p in changed if p in before}, after={p: after[p] for p in changed}
        )
    return (TOO_MUCH,) if found is None else _new_errors(found)


def _ruff(folder: Path, **trees: Mapping[str, bytes]) -> dict[str, list[tuple[str, int, str]]] | None:
    """Errors of each tree as (path, line, `CODE message`), from one ruff process over all of them; None: too many."""
    for tree, files in trees.items():
        for path, content in files.items():
            target = folder / tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    command = [_ruff_binary(), "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "--ignore-noqa"]
    command += ["--target-version", "py314", "--select", LINT_RULES, "--output-format", "json", str(folder)]
    listed = _bounded(command, folder / "listed")
    if listed is None:
        return None
    found: dict[str, list[tuple[str, int, str]]] = {tree: [] for tree in trees}
    for row in json.loads(listed):
        tree, _, path = Path(row["filename"]).resolve().relative_to(folder.resolve()).as_posix().partition("/")
        found[tree].append((path, row["location"]["row"], f"{row['code'] or 'syntax-error'} {row['message']}"))
    return found


def _bounded(command: list[str], output: Path) -> bytes | None:
    """What it lists; None when that is more than can be borne."""
    limited = ("sh", "-c", f'ulimit -d {LINT_MEMORY_MB << 10}; exec "$@"', "sh", *command)
    with output.open("wb") as file:
        try:
            # One thread: each has memory of its own, and a machine may have a hundred cores.
            settings = {**os.environ, "RAYON_NUM_THREADS": "1"}
            host.run_helper(
                limited, timeout=LINT_SECONDS, stdout=file, stderr=subprocess.DEVNULL, check=True, env=settings
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
    return output.read_bytes() if output.stat().st_size <= LINT_BYTES else None


_finding = threading.Lock()


@functools.cache
def _ruff_binary() -> str:
    from ruff import find_ruff_bin

    # One at a time: it asks `sysconfig`, which gives None to a thread that asks while another is the first.
    with _finding:
        return str(find_ruff_bin())


def _new_errors(found: Mapping[str, list[tuple[str, int, str]]]) -> tuple[str, ...]:
    """Errors of `after` beyond those of `before`, by kind and file: lines move, so they do not count."""
    known = Counter((path, error) for path, _, error in found["before"])
    new = []
    for path, line, error in sorted(found["after"]):
        if known[path, error]:
            known[path, error] -= 1
        else:
            new.append(f"{path}:{line}: {error}")
    return tuple(new)
