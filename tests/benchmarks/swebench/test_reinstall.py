"""Which patches need an install, and when what it gives is believed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from retrial.benchmarks.swebench import eval_script, reinstall
from retrial.benchmarks.swebench.reinstall import AFTER, BEFORE, Trial
from tests.support.image_task import EVAL_SCRIPT

FINDER = "module calc from /testbed/calc"


def trial(before: str, after: str | None) -> Trial:
    reports = {BEFORE: before.encode(), **({} if after is None else {AFTER: after.encode()})}
    found = reinstall.read({f".retrial/{name}": content for name, content in reports.items()})
    assert found is not None
    return found


@pytest.mark.parametrize("path", ["a/b.pyx", "a/B.F90", "a.h", "a/_x.pyx.in", "setupext.py", "CMakeLists.txt"])
def test_sources_of_extensions_may_need_an_install(path: str) -> None:
    assert reinstall.compiled(path)


@pytest.mark.parametrize("path", ["a.py", "reproduce.sh", "NOTES", "doc/17.bugfix", "a/data.csv", "MANIFEST.rst", "c"])
def test_files_that_an_editable_install_points_at_need_none(path: str) -> None:
    assert not reinstall.compiled(path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("distribution calc 0.17.1.dev52+gabc123 in /site", "distribution calc 0.17.1.dev53+g98f.d20261118 in /site"),
        ("path /site/Calc-3.0.dev20190916-py3.6.egg", "path /site/Calc-3.0.dev20261118-py3.6.egg"),
        (FINDER, f"{FINDER}\nbuilt build/lib/calc/fast.so"),
    ],
)
def test_what_every_build_changes_is_no_difference(before: str, after: str) -> None:
    assert trial(before, after).fault == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("distribution xarray 0.17.1.dev52+gabc in /site", "distribution xarray 0.0.0 in /site"),
        ("path /testbed\nlink calc.egg-link", FINDER),
        (FINDER, "module calc from /elsewhere/calc"),
        ("extension calc/fast.so", ""),
    ],
)
def test_another_version_kind_or_place_is_a_difference(before: str, after: str) -> None:
    assert "gives" in trial(before, after).fault


def test_an_install_that_fails_without_the_patch_is_a_fault() -> None:
    assert "even without the patch" in trial(FINDER, None).fault
    assert reinstall.read({}) is None


def test_the_state_of_an_environment_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "calc").mkdir()
    (tmp_path / "calc" / "fast.so").touch()
    program = [sys.executable, "-I", "-c", reinstall.STATE, str(tmp_path)]
    seen = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    assert any(line.startswith("distribution pytest ") for line in seen)
    assert os.path.join("extension calc", "fast.so") in seen


def test_a_trial_has_nothing_of_the_tests_and_stops_after_the_install() -> None:
    script = eval_script.trial(EVAL_SCRIPT, "state.py")
    assert script.index(f'/{BEFORE}"') < script.index("-m pip install --no-build-isolation --no-deps -e . || exit 0")
    assert script.index("|| exit 0") < script.index(f'/{AFTER}"') and script.endswith("exit 0\n")
    assert "git apply" not in script and "pytest" not in script
    assert eval_script.trial(EVAL_SCRIPT.replace("python3 -m pip install -e .\n", ""), "state.py") == ""


def test_an_install_that_copies_is_told_from_one_that_points_at_the_tree() -> None:
    assert not eval_script.copies(EVAL_SCRIPT)
    assert eval_script.copies(EVAL_SCRIPT.replace("install -e .", "install ."))
