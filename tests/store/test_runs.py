"""The files of a run."""

from __future__ import annotations

from pathlib import Path

from retrial.store.runs import Run


def test_a_run_that_is_named_by_its_folder_has_the_same_files(tmp_path: Path) -> None:
    run = Run(tmp_path, "r")
    run.folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(run.folder)
    for folder in (run.folder, tmp_path / "link"):
        found = Run.at(folder)
        assert (found.name, found.folder, found.logs) == (run.name, run.folder, run.logs)
