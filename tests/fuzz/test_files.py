"""Changed archives of reports, settings of exercises, logs of SWE-bench: read as far as they hold, never believed."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from retrial.benchmarks.exercism.exercise import CONFIG, read_exercise
from retrial.benchmarks.swebench import container_script, official_grader
from retrial.benchmarks.swebench.official_grader import GRADER, OfficialCheck, OfficialTests
from retrial.checks import Check
from retrial.errors import UsageError
from retrial.grading.judge import judge
from retrial.sandboxes.supervisor import read_reports
from retrial.types import Execution
from tests.fuzz.mutation import NAMES, changed_bytes, changed_lines, fuzz
from tests.support.exercises import write_exercise

# Archives


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in ("junit.xml", "deep/er/report.json", "x" * 150, "../escape.xml", "/etc/passwd"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            member = tarfile.TarInfo("link.xml")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    return packed.getvalue()


ARCHIVE = archive()
FIELDS = (
    b"\0" * 512,
    b"00000000000\0",
    b"77777777777\0",
    b"-1\0",
    b"\x80" + b"\xff" * 11,
    b"L",
    b"K",
    b"x",
    b"ustar\0",
    b"../../x\0",
)


@fuzz(1500)
@given(change=changed_bytes(FIELDS))
@example(change=lambda whole: whole[:700])
@example(change=lambda whole: b"")
def test_an_archive_gives_plain_files_that_are_in_it_or_nothing(change: Callable[[bytes], bytes]) -> None:
    packed = change(ARCHIVE)
    note(repr(packed))
    found = read_reports(packed)
    for name, content in (found or {}).items():
        path = PurePosixPath(name)
        assert not path.is_absolute() and ".." not in path.parts and str(path) != "."
        assert content in packed


# Settings of exercises

FILES = {"solution": ["sum_up.py"], "test": ["sum_up_test.py"], "example": [".meta/example.py"], "editor": []}
OUTSIDE = "../../../../sum_up.py"
odd: st.SearchStrategy[object] = st.sampled_from([None, 5, "x", [], {}, ["sum_up.py", 5], "\ud800", [["x"]], True])
names = st.lists(st.sampled_from(["sum_up.py", "sum_up_test.py", OUTSIDE, "/etc/passwd", *NAMES]), max_size=3)
kinds = st.fixed_dictionaries({}, optional=dict.fromkeys(FILES, names | odd))
settings = st.fixed_dictionaries(
    {"files": kinds.map(lambda some: {**FILES, **some}) | odd}, optional={"test_command": odd, "custom": odd}
).map(json.dumps)
TOKENS = (b"\xff", b'"', b"\\", b"{", b"]", b"/", b"..", b"NaN", b"[" * 5000, b"9" * 5000)


@pytest.fixture(scope="module")
def exercise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = write_exercise(tmp_path_factory.mktemp("tasks"))
    (root / "sum_up.py").write_text("outside\n")
    return root / "python" / "exercises" / "practice" / "sum-up"


@fuzz(500)
@given(text=settings, change=changed_bytes(TOKENS) | st.just(bytes))
@example(text="[" * 100_000, change=bytes)
@example(text=json.dumps({"files": {**FILES, "solution": ["x" * 300]}}), change=bytes)
@example(text=json.dumps({"files": {**FILES, "solution": [OUTSIDE]}}), change=bytes)
@example(text=json.dumps({"files": {**FILES, "example": ["/etc/passwd"]}}), change=bytes)
def test_settings_are_refused_with_a_sentence_or_name_files_of_the_exercise(
    exercise: Path, text: str, change: Callable[[bytes], bytes]
) -> None:
    (exercise / CONFIG).write_bytes(change(text.encode()))
    try:
        found = read_exercise(exercise, "python")
    except UsageError as error:
        assert str(exercise) in str(error)
        return
    for name in (*found.solution, *found.test, *found.example, *found.beside):
        assert (exercise / name).resolve().is_relative_to(exercise)


# Logs of SWE-bench

REQUIRED = OfficialTests(parser="parse_log_pytest", fail_to_pass=("t.py::new",), pass_to_pass=("t.py::old",))
CHECK = Check(script="", files={}, result_parser="", grader=GRADER, grader_data=OfficialCheck(tests=REQUIRED))
HEAD = f"{container_script.APPLIED}git apply\n{container_script.STARTED}{container_script.SCRIPT_WITHOUT_INSTALL}\n"
LOG = f"""\
+ : '{official_grader.START}'
+ pytest t.py
PASSED t.py::new
FAILED t.py::old - AssertionError
PASSED t.py::other
1 failed, 2 passed in 0.1s
+ : '{official_grader.END}'
"""
LINES = (
    "", "PASSED t.py::new", "FAILED t.py::new", "FAILED t.py::old", "ERROR t.py::old", "SKIPPED t.py::old", "PASSED",
    f"+ : '{official_grader.START}'", f"+ : '{official_grader.END}'", official_grader.START, official_grader.END,
    f"+ : '{official_grader.STATUS}: 0'",
    "XFAIL t.py::old", "t.py::old PASSED", "[1] t.py:5: x", "SKIPPED [1] x", "PASSED t.py::old[",
    "\x1b[32mPASSED\x1b[0m",
)  # fmt: skip


def say_passed(log: str, test: str) -> bool:
    """Somewhere in the log there is a line with that test and a word for having passed."""
    return any(test in line and any(word in line for word in ("PASSED", "XFAIL")) for line in log.splitlines())


@fuzz(300)
@given(change=changed_lines(LINES), status=st.sampled_from([0, 1, 2, None]), flag=st.sampled_from(["", "late", "cut"]))
def test_a_log_resolves_nothing_that_it_does_not_say(
    change: Callable[[str], str], status: int | None, flag: str
) -> None:
    log = change(LOG)
    note(log)
    run = Execution(exit_code=status, stdout=HEAD + log, stderr="", seconds=1.0)
    verdict = judge(CHECK, replace(run, timed_out=flag == "late", truncated=flag == "cut"))
    if verdict.resolved:
        assert status is not None and not flag
        assert say_passed(log, "t.py::new") and say_passed(log, "t.py::old")
