"""Eval scripts of SWE-bench: cut after their test command, kept from the network, or with other tests in them.

All rows have one shape: set up, install the package, check the test files out, apply the test patch from a heredoc,
one test command between two markers, check the test files out again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable

from retrial.benchmarks.swebench.columns import command_of
from retrial.benchmarks.swebench.container_script import INSERT_TESTS_MARKER, JOB, NOT_INSTALLED, SCRIPTS
from retrial.benchmarks.swebench.official_grader import END, START, STATUS
from retrial.benchmarks.swebench.reinstall import AFTER, BEFORE

_HEREDOC = re.compile(r"<<\s*'?(\w+)'?\s*$")
_INSTALL = re.compile(r"\b(?:pip3? install|setup\.py (?:install|develop))\b")
_EDITABLE = re.compile(r"\bpip3? install\b.*\s(?:-e|--editable)[\s=]|\bsetup\.py develop\b")
_PYTHON = re.compile(r"(\S*python[\d.]*)\s+(?:-m pip|setup\.py)\b")
_LOCAL = re.compile(r"(\bpip3? install\b)(?=.*\s'?\.(?:['\s\[]|$))")
_TEST_FILES = re.compile(r"git (?:checkout [0-9a-f]{7,40} |apply )|rm -f ")
_CHOOSING = re.compile(r"[|;&<>]|-[nktfg]$|--?(?:filter|grep|tests?|name|run|match|only)\b|-Dtest\b")
"""Words of a command that may choose tests by other means than files, or say more than one command."""
WITHOUT_NETWORK = r"\1 --no-build-isolation --no-deps"
TESTS = "{tests}"
REPORTS = "RETRIAL_REPORTS"
"""As every sandbox calls the folder from which files come back."""
_LOOKING = re.compile(r"git (?:status|show|-c core\.fileMode=false diff)\b")

SHELL, TRACED = "#!/bin/bash", "set -uxo pipefail"
# A package index that is not there must not be waited for.
OFFLINE = "export PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=2 PIP_DISABLE_PIP_VERSION_CHECK=1"


def hidden(script: str, *, network: bool, lean: bool, assets: str = "") -> str:
    """The script up to its test command, whose status is then that of the script.

    `assets` is the folder in the job with files for the tree that the test patch cannot carry.
    """
    lines = _edited(script, lambda line: _prepared(line, network=network, lean=lean))
    start, end = _place(START, lines), _place(END, lines)
    copied = [f'cp -R "${JOB}/{assets}/." .'] if assets else []
    return _whole([*lines[:start], *copied, INSERT_TESTS_MARKER, *lines[start:end]], network=network)


def looking(script: str, paths: Iterable[str]) -> str:
    """The script up to its tests, of which these files are left in the reports, each by its number."""
    lines = _edited(script, lambda line: "" if _INSTALL.search(line) or _LOOKING.match(line) else line)
    # One that the test patch removes is not there to be copied.
    copied = [
        f'[ ! -f {shlex.quote(path)} ] || cp {shlex.quote(path)} "${REPORTS}/{number}" || exit 1'
        for number, path in enumerate(paths)
    ]
    return "\n".join([*lines[: _place(START, lines)], *copied, "exit 0", ""])


def trial(script: str, state: str) -> str:
    """The script up to its last install, for the untouched tree; empty where it installs nothing.

    `state` is the program in the job that prints what is installed: before, and again if the install worked.
    """
    lines = _edited(script, _without_tests)
    lines = lines[: _place(START, lines)]
    places = [number for number, line in enumerate(lines) if _INSTALL.search(line)]
    if not places:
        return ""
    first, last = places[0], places[-1] + 1
    named = _PYTHON.search(lines[first])
    looks = f'{named[1] if named else "python"} -I "${JOB}/{state}" "$PWD" >"${REPORTS}'
    installs = [f"{_offline(line)} || exit 0" if _INSTALL.search(line) else line for line in lines[first:last]]
    steps = [*lines[:first], f'{looks}/{BEFORE}" || exit 1', *installs, f'{looks}/{AFTER}" || exit 1', "exit 0", ""]
    return "\n".join([OFFLINE, *steps])


def copies(script: str) -> bool:
    """Whether an install puts copies of files elsewhere, so that changes in the tree alone are not seen."""
    lines = _edited(script, _without_tests)
    return any(_INSTALL.search(line) and not _EDITABLE.search(line) for line in lines[: _place(START, lines)])


def visible(script: str, arguments: Iterable[str], test_files: Collection[str], *, network: bool, lean: bool) -> str:
    """The same with other tests: nothing of the test patch, its files or their names is left in it."""
    lines = _edited(script, lambda line: _without_tests(_prepared(line, network=network, lean=lean)))
    start = _place(START, lines)
    tests = " ".join(shlex.quote(argument) for argument in arguments)
    before = [line for line in lines[:start] if line]
    command = bare_command(script, test_files).replace(TESTS, tests).rstrip()
    return _whole([*before, lines[start], command], network=network)


def bare_command(script: str, test_files: Collection[str]) -> str:
    """The test command with `{tests}` in place of the tests it names; empty where they cannot be told from the rest."""
    named = {*test_files, *map(dotted, test_files)}
    words = command_of(script).split(" ")
    places = [place for place, word in enumerate(words) if word in named]
    kept = [word for word in words if word not in named]
    if not places or any("\n" in word or _CHOOSING.match(word) for word in kept):
        return ""
    return " ".join([*kept[: places[0]], TESTS, *kept[places[0] :]])


def named_as(script: str, test_files: Collection[str]) -> Callable[[str], str]:
    """How this command names a test file: by its path, or as Django's runner does."""
    words = set(command_of(script).split(" "))
    return dotted if words & set(map(dotted, test_files)) else str


def dotted(path: str) -> str:
    return path.removeprefix("tests/").removesuffix(".py").replace("/", ".")


def _prepared(line: str, *, network: bool, lean: bool) -> str:
    if network or not _INSTALL.search(line):
        return line
    if lean and _EDITABLE.search(line):
        # What is installed points at the tree: changed Python files are seen without doing it again.
        return ""
    return f"{_offline(line)} || printf '%s\\n' '{NOT_INSTALLED}'"


def _offline(line: str) -> str:
    return _LOCAL.sub(WITHOUT_NETWORK, line)


def _without_tests(line: str) -> str:
    return "" if _TEST_FILES.match(line) or _LOOKING.match(line) else line


def _edited(script: str, change: Callable[[str], str]) -> list[str]:
    """The lines, each changed unless it is text of a heredoc; one whose command goes, goes with it."""
    found: list[str] = []
    delimiter, keep = "", True
    for line in script.rstrip("\n").split("\n"):
        if delimiter:
            found += [line] if keep else []
            delimiter = "" if line == delimiter else delimiter
            continue
        changed = change(line)
        found += [changed] if changed or not line else []
        if heredoc := _HEREDOC.search(line):
            delimiter, keep = heredoc[1], bool(changed)
    return found


def _place(marker: str, lines: list[str]) -> int:
    return next(number for number, line in enumerate(lines) if marker in line)


def _whole(lines: list[str], *, network: bool) -> str:
    # A shell reads a script as it goes on, and what this one installs and tests is root as well: so it is read whole
    # before any of it is run, and emptied, for nobody is to read in it or to write to it.
    emptied = [f': >"${JOB}/{name}"' for name in SCRIPTS]
    # As the official runner has it, whatever the row says: the markers are seen because the shell traces its commands.
    first = [SHELL, "{", *emptied, *([] if network else [OFFLINE]), TRACED]
    # What the official grading looks for behind the results; it must not become the script's status.
    last = ["retrial_status=$?", f": '{END}'", f'echo "{STATUS}: $retrial_status"', "exit $retrial_status", "}"]
    return "\n".join([*first, *(line for line in lines if line not in (SHELL, TRACED)), *last, ""])
