"""Files that are written again only when they would be others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retrial.system.files import write_if_other
from retrial.system.secrets import SecretMasker


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_if_other(path, b"one")
    before = path.stat().st_ino
    write_if_other(path, b"one")
    assert path.stat().st_ino == before
    write_if_other(path, b"two")
    assert (path.read_bytes(), path.stat().st_ino == before) == (b"two", False)


def test_a_key_is_masked_before_it_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = SecretMasker()
    known.add("sk-0123456789abcdef0123")
    monkeypatch.setattr("retrial.system.files.MASKER", known)
    path = tmp_path / "log"
    path.write_bytes(b"the key is sk-0123456789abcdef0123")
    write_if_other(path, b"the key is sk-0123456789abcdef0123")
    assert b"sk-0123" not in path.read_bytes()


def test_a_folder_in_its_place_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(OSError, match=os.strerror(21)):
        write_if_other(tmp_path / "log", b"one")
