"""Passwords and keys are not written down, wherever people put them."""

from __future__ import annotations

import pytest

from retrial.secrets import hidden


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("http://me:hunter2@host:80/v1", "http://***@host:80/v1"),
        ("--api-base=https://me:hun@ter2@host", "--api-base=https://***@host"),
        ("http://token@host/a@b", "http://***@host/a@b"),
        ('{"api_key": "hunter2", "top_p": 1}', '{"api_key": "***", "top_p": 1}'),
        ('{"a": {"X-Token" : "hun\\"ter2"}}', '{"a": {"X-Token" : "***"}}'),
        ('{"Authorization": "Bearer hunter2"}', '{"Authorization": "***"}'),
    ],
)
def test_secrets_are_hidden_once_and_for_all(text: str, kept: str) -> None:
    assert hidden(text) == kept
    assert hidden(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/v1",
        "me@host",
        '{"thinking": {"budget_tokens": 1024}}',
        '{"stop": "key"}',
        "",
        "-m a:whole",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert hidden(text) == text
