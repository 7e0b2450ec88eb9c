"""Images: what an engine is handed, and when a name changes."""

from __future__ import annotations

import io
import tarfile

import pytest

from retrial import registry
from retrial.errors import UsageError
from retrial.sandboxes.docker import images
from retrial.types import Environment


def context(target: str) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(images._context(target))) as archive:
        return {member.name: archive.extractfile(member).read().decode() for member in archive}  # type: ignore[union-attr]


def test_one_target_brings_no_other_stage_and_no_other_files() -> None:
    files = context("go")
    assert "AS go" in files["Dockerfile"]
    assert files["Dockerfile"].count("FROM ") == 1
    assert "ARG BASE" in files["Dockerfile"]
    assert {name.split("/")[1] for name in files if "/" in name} == {"go"}


def test_all_brings_every_language() -> None:
    files = context("all")
    for language in registry.names("languages"):
        assert f"AS {language}\n" in files["Dockerfile"]
    assert {name.split("/")[1] for name in files if "/" in name} >= {"go", "rust", "java", "javascript"}


def test_an_unknown_target_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no target 'cobol'; it has python"):
        images.name(Environment(name="cobol", image="cobol", language="cobol"))


def test_a_full_name_is_taken_as_it_is() -> None:
    assert images.name(Environment(name="x", image="me/mine:1", language="")) == "me/mine:1"
