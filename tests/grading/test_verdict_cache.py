"""Cache entries: what is used again is exactly what was stored, and what is damaged is named and not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.grading import verdict_cache
from retrial.grading.verdict_cache import Verdicts
from retrial.system.secrets import SecretMasker
from retrial.types import Outcome, Verdict

SECRET = "s-5f1c09d2a77b4e"
VERDICT = Verdict(outcome=Outcome.TESTS_FAILED, reason="1 of 2 tests did not pass: a", stdout="a failed\n")


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return tmp_path / "aa" / "entry.json"


@pytest.mark.parametrize("value", ["return a + b\n", "", {"a": ["ä", None, 1.5, "\udc80"]}, [], {}])
def test_a_value_comes_back_as_it_was(entry: Path, value: object) -> None:
    verdict_cache.write_entry(entry, value)
    assert verdict_cache.read_entry(entry) == value


def test_what_looks_like_a_key_is_not_masked(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = SecretMasker()
    known.add(SECRET)
    for module in ("retrial.store.json_io", "retrial.system.files", "retrial.grading.verdict_cache"):
        monkeypatch.setattr(f"{module}.MASKER", known)
    verdict_cache.write_entry(entry, f"key = '{SECRET}'")
    assert verdict_cache.read_entry(entry) == f"key = '{SECRET}'"


def test_nothing_is_kept_at_a_path_that_does_not_exist(entry: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict_cache.read_entry(entry) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda content: content[:20], id="cut off"),
        pytest.param(lambda content: content[:-1], id="without its last byte"),
        pytest.param(lambda content: content.replace(b"a + b", b"a - b"), id="another value"),
        pytest.param(lambda content: content.replace(b"a + b", b"***"), id="masked by hand"),
        pytest.param(lambda content: bytes(len(content)), id="zeros"),
        pytest.param(lambda content: b"", id="empty"),
    ],
)
def test_a_damaged_entry_is_named_and_not_used(entry: Path, change: object, capsys: pytest.CaptureFixture[str]) -> None:
    verdict_cache.write_entry(entry, "return a + b\n")
    entry.write_bytes(change(entry.read_bytes()))  # type: ignore[operator]
    assert verdict_cache.read_entry(entry) is None
    assert str(entry) in capsys.readouterr().err


def test_an_entry_of_an_older_version_is_left_without_a_word(entry: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry.parent.mkdir()
    entry.write_text('"return a + b"\n')
    assert verdict_cache.read_entry(entry) is None
    assert capsys.readouterr().err == ""


def test_a_verdict_is_kept_as_it_is_and_a_damaged_one_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = Verdicts(tmp_path)
    verdicts.put("abc", VERDICT)
    assert verdicts.get("abc") == VERDICT
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(path.read_bytes().replace(b"tests_failed", b"resolved"))
    assert verdicts.get("abc") is None
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("learn", [SecretMasker.add, SecretMasker.guess])
def test_a_verdict_with_a_key_in_it_is_not_kept_and_takes_the_earlier_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learn: object
) -> None:
    known = SecretMasker()
    monkeypatch.setattr(verdict_cache, "MASKER", known)
    verdicts = Verdicts(tmp_path)
    verdicts.put("abc", VERDICT)
    learn(known, SECRET)  # type: ignore[operator]
    verdicts.put("abc", Verdict(outcome=Outcome.TESTS_FAILED, stdout=f"key: {SECRET}"))
    assert verdicts.get("abc") is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
