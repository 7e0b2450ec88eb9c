"""Which edit format `auto` stands for."""

from __future__ import annotations

import pytest

from retrial import registry
from retrial.formats import defaults
from retrial.formats.defaults import split


@pytest.mark.parametrize(
    ("name", "edit_format"),
    [
        ("gpt-5", "diff"),
        ("openrouter/openai/gpt-5-mini", "diff"),
        ("gpt-4.1-2025-04-14", "diff"),
        ("gpt-4o-mini", "whole"),
        ("gpt-4.1-nano", "whole"),
        ("gpt-3.5-turbo", "whole"),
        ("o3", "diff"),
        ("o4-mini", "diff"),
        ("openrouter/anthropic/claude-opus-4", "diff"),
        ("anthropic/claude-3-5-haiku-latest", "diff"),
        ("claude-3-haiku-20240307", "whole"),
        ("gemini/gemini-2.5-pro", "diff-fenced"),
        ("openrouter/google/gemini-3-flash-preview", "diff-fenced"),
        ("gemini/gemini-1.5-flash", "whole"),
        ("deepseek/deepseek-chat", "diff"),
        ("openrouter/deepseek/deepseek-r1:free", "diff"),
        ("openrouter/deepseek/deepseek-r1-distill-qwen-32b", "whole"),
        ("openrouter/qwen/qwen3-coder", "diff"),
        ("together/Qwen/Qwen3-Coder-480B-A35B-Instruct", "diff"),
        ("xai/grok-4", "diff"),
        ("openrouter/moonshotai/kimi-k2", "diff"),
        ("openrouter/z-ai/glm-4.6", "diff"),
    ],
)
def test_strong_families_write_diffs_and_others_whole_files(name: str, edit_format: str) -> None:
    assert defaults.auto(name) == edit_format


@pytest.mark.parametrize(
    "name",
    ["local", "local/claude-opus.gguf", "ollama/deepseek-r1:7b", "replay/gpt-5.jsonl", "my-model", "ooo-3", ""],
)
def test_what_is_small_or_unknown_writes_whole_files(name: str) -> None:
    assert defaults.auto(name) == "whole"


def test_every_format_in_the_table_exists() -> None:
    assert {edit_format for edit_format, _ in defaults.TABLE} <= set(registry.names("formats"))


def test_auto_is_asked_only_where_no_format_is_named() -> None:
    assert split("gpt-5", "auto") == ("gpt-5", "diff")
    assert split("gpt-5", "whole") == ("gpt-5", "whole")
    assert split("gpt-5:whole", "auto") == ("gpt-5", "whole")
