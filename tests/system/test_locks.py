"""One process at a run; who is refused is told by whom, and a killed holder holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from retrial.errors import UsageError
from retrial.store.runs import Run
from retrial.system.locks import PREDICTING, SCORING
from tests.conftest import PROJECT

HOLDER = """
import sys
from pathlib import Path
from retrial.system.locks import PREDICTING
from retrial.store.runs import Run

with Run(Path(sys.argv[1]), "it").lock(PREDICTING):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, "it")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout and holder.stdout.readline() == "held\n"
        told = rf"Run 'it' is under way in another process \(pid {holder.pid} on {os.uname().nodename}, since 2.*--run"
        with pytest.raises(UsageError, match=told), run.lock(PREDICTING):
            pass
        holder.kill()
    with run.lock(PREDICTING):
        pass


def test_scoring_and_asking_do_not_keep_each_other_out(tmp_path: Path) -> None:
    run = Run(tmp_path, "it")
    with run.lock(PREDICTING), run.lock(SCORING):
        with pytest.raises(UsageError, match="is being scored"), run.lock(SCORING):
            pass
        with pytest.raises(UsageError, match="is under way"), run.lock(PREDICTING):
            pass


def test_one_whose_file_was_taken_away_is_not_held_any_more(tmp_path: Path) -> None:
    run = Run(tmp_path, "it")
    with run.lock(PREDICTING) as lost:
        assert lost() == ""
        (run.folder / PREDICTING.file).unlink()
        assert "run.lock was removed" in lost()
        with run.lock(PREDICTING) as again:
            assert (bool(lost()), again()) == (True, "")


def test_a_claim_is_no_prediction(tmp_path: Path) -> None:
    run = Run(tmp_path, "it")
    with run.lock(PREDICTING), run.lock(SCORING):
        assert list(run.predictions()) == []
