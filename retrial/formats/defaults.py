"""What `auto` means: the edit format for a model whose user names none.

Writing a whole file asks the least of a model, so that is for weaker ones and for those nobody knows; families that
are known to be strong write only what changes. The first pattern that fits counts.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from retrial import registry

WHOLE = "whole"

SERVED_HERE = ("local", "ollama", "replay")
"""Parts and providers whose models are mostly small, whatever family they are cut down from."""

TABLE = (
    # Small or old ones of strong families first.
    ("*distill*", WHOLE),
    ("*-nano*", WHOLE),
    ("gpt-4o-mini*", WHOLE),
    ("o1-mini*", WHOLE),
    ("claude-3-haiku*", WHOLE),
    ("claude-2*", WHOLE),
    ("claude-instant*", WHOLE),
    ("gemini-1.5-flash*", WHOLE),
    ("gpt-4*", "diff"),
    ("gpt-5*", "diff"),
    ("gpt-oss-120b*", "diff"),
    ("chatgpt-4o*", "diff"),
    ("codex*", "diff"),
    ("o[134]", "diff"),
    ("o[134]-*", "diff"),
    ("claude*", "diff"),
    # These are known to put a file's name inside the fence, whatever they are told.
    ("gemini*pro*", "diff-fenced"),
    ("gemini-2.5*", "diff-fenced"),
    ("gemini-3*", "diff-fenced"),
    ("gemini-2.0-flash", "diff"),
    ("deepseek*", "diff"),
    ("qwen3-coder*", "diff"),
    ("qwen3-max*", "diff"),
    ("grok-[2-9]*", "diff"),
    ("grok-code*", "diff"),
    ("kimi-k2*", "diff"),
    ("glm-[4-9]*", "diff"),
)


def auto(name: str) -> str:
    """The edit format for a model's name as on the command line, such as `openrouter/anthropic/claude-opus-4`."""
    if name.partition("/")[0] in SERVED_HERE:
        return WHOLE
    last = name.rpartition("/")[2].lower()
    return next((edit_format for pattern, edit_format in TABLE if fnmatchcase(last, pattern)), WHOLE)


def split(text: str, default_format: str) -> tuple[str, str]:
    """Name and edit format; what follows a colon counts only if it names a format (`ollama/qwen:7b` does not)."""
    name, _, suffix = text.rpartition(":")
    if name and suffix in registry.names("formats"):
        return name, suffix
    return text, auto(text) if default_format == "auto" else default_format
