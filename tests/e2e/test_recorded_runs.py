"""Runs that an earlier version recorded are resumed, scored, replayed and compared as they were then.

The programs are used as users use them, so that this file stays as it is when code moves or is renamed. When one of
these tests fails, files or output have changed for users. `recording.py` says when to record again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import own_cache
from tests.e2e import recording
from tests.e2e.masks import assert_same, masked, masked_text
from tests.e2e.recording import STEPS

pytestmark = [pytest.mark.real, pytest.mark.smoke, pytest.mark.usefixtures("bwrap")]

Repeat = Callable[[str], None]


@pytest.fixture
def repeat(tmp_path: Path) -> Repeat:
    """Performs a step again from the recorded state before it, and compares output, exit code and all files."""

    def performed(name: str) -> None:
        step, folder = STEPS[name], tmp_path.resolve() / "run"
        folder.mkdir()
        recording.lay_out(step, folder)
        shown = recording.perform(step, folder, own_cache(tmp_path / "cache"))
        now = {path: recording.scrubbed(text, folder) for path, text in recording.state(folder).items()}
        then = recording.recorded((*step.after, name))
        assert_same(masked_text(recording.terminal(name)), masked_text(shown), "output")
        assert sorted(now) == sorted(then)
        for path in then:
            assert_same(masked(path, then[path]), masked(path, now[path]), path)

    return performed


def test_a_killed_run_is_resumed_without_asking_again(repeat: Repeat) -> None:
    repeat("resumed")


def test_a_run_is_not_resumed_with_other_settings(repeat: Repeat) -> None:
    repeat("refused")


def test_a_run_and_all_its_attempts_are_scored(repeat: Repeat) -> None:
    repeat("scored")


def test_a_run_is_replayed(repeat: Repeat) -> None:
    repeat("replayed")


def test_predictions_made_elsewhere_are_scored_and_miss_a_gate(repeat: Repeat) -> None:
    repeat("foreign")


def test_a_broken_predictions_file_is_refused(repeat: Repeat) -> None:
    repeat("broken")


def test_a_task_that_a_model_does_not_answer_is_not_measured(repeat: Repeat) -> None:
    repeat("unanswered")


def test_a_grid_of_models_and_formats_is_run(repeat: Repeat) -> None:
    repeat("grid")


def test_a_grid_is_scored_and_reported(repeat: Repeat) -> None:
    repeat("grid-report")


def test_two_runs_are_compared(repeat: Repeat) -> None:
    repeat("compared")
