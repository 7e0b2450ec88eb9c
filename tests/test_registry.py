"""A part is found by its file and by what it defines."""

from __future__ import annotations

import pytest

from retrial import registry
from retrial.errors import UsageError

KINDS = ("agents", "benchmarks", "formats", "executors", "reports.exports", "languages", "models", "sandboxes")


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_can_be_made(kind: str) -> None:
    assert registry.names(kind)
    for name in registry.names(kind):
        assert callable(registry.module(kind, name).make)


def test_a_helper_is_no_part_whatever_its_name() -> None:
    assert "submission" not in registry.names("reports.exports")
    with pytest.raises(UsageError, match="Unknown export 'submission'"):
        registry.module("reports.exports", "submission")
