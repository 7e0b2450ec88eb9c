"""Packages and caches on the host: made once, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.errors import EnvironmentMissing
from retrial.sandboxes.bwrap import toolchain_store


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A preparation of the test's own, with a cache of its own."""
    monkeypatch.setattr(toolchain_store, "SCRIPTS", tmp_path / "prepare")
    monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "prepare" / "basic").mkdir(parents=True)
    return tmp_path / "prepare" / "basic" / "prepare"


def made(version: str = "1.0") -> list[str]:
    said: list[str] = []
    toolchain_store.ensure("basic", version, said.append)
    return said


def test_a_store_is_made_once_and_said(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"; echo made >"$1/file"\n')
    assert len(made()) == 1
    assert (toolchain_store.root("basic", "1.0") / "basic" / "file").read_text() == "made\n"
    assert made() == []


def test_another_version_or_another_script_is_another_store(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"\n')
    first = toolchain_store.root("basic", "1.0")
    assert toolchain_store.root("basic", "2.0") != first
    scripts.write_text('mkdir -p "$1"\n')
    assert toolchain_store.root("basic", "1.0") != first


def test_a_preparation_that_fails_is_named_and_tried_again(scripts: Path) -> None:
    scripts.write_text('mkdir "$1"; touch "$1/half"; [ -e "$1.go" ] || { echo no network; exit 1; }\n')
    with pytest.raises(EnvironmentMissing, match="basic could not be had: no network"):
        made()
    assert not toolchain_store.ready("basic", "1.0")
    (toolchain_store.root("basic", "1.0") / "basic.go").touch()
    assert len(made()) == 1
    assert toolchain_store.ready("basic", "1.0")


def test_a_language_without_a_preparation_is_always_ready() -> None:
    assert toolchain_store.ready("nothing-of-the-kind", "1.0")
