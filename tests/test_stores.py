"""Packages and caches on the host: made once, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.errors import EnvironmentMissing
from retrial.sandboxes import _stores


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A preparation of the test's own, with a cache of its own."""
    monkeypatch.setattr(_stores, "SCRIPTS", tmp_path / "prepare")
    monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "prepare" / "basic").mkdir(parents=True)
    return tmp_path / "prepare" / "basic" / "prepare"


def made(version: str = "1.0") -> list[str]:
    said: list[str] = []
    _stores.ensure("basic", version, said.append)
    return said


def test_a_store_is_made_once_and_said(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"; echo made >"$1/file"\n')
    assert len(made()) == 1
    assert (_stores.root("basic", "1.0") / "basic" / "file").read_text() == "made\n"
    assert made() == []


def test_another_version_or_another_script_is_another_store(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"\n')
    first = _stores.root("basic", "1.0")
    assert _stores.root("basic", "2.0") != first
    scripts.write_text('mkdir -p "$1"\n')
    assert _stores.root("basic", "1.0") != first


def test_a_preparation_that_fails_is_named_and_tried_again(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"; touch "$1/half"; [ -e "$1.go" ] || { echo no network; exit 1; }\n')
    with pytest.raises(EnvironmentMissing, match="basic could not be had: no network"):
        made()
    assert not _stores.ready("basic", "1.0")
    (_stores.root("basic", "1.0") / "basic.go").touch()
    assert len(made()) == 1
    assert _stores.ready("basic", "1.0")


def test_a_language_without_a_preparation_is_always_ready() -> None:
    assert _stores.ready("nothing-of-the-kind", "1.0")
