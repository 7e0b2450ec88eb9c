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
    (WHOLE, "*distill* *-nano* gpt-4o-mini* o1-mini* claude-3-haiku* claude-2* claude-instant* gemini-1.5-flash*"),
    ("diff", "gpt-4* gpt-5* gpt-oss-120b* chatgpt-4o* codex* o[134] o[134]-* claude*"),
    # These are known to put a file's name inside the fence, whatever they are told.
    ("diff-fenced", "gemini*pro* gemini-2.5* gemini-3*"),
    ("diff", "gemini-2.0-flash deepseek* qwen3-coder* qwen3-max* grok-[2-9]* grok-code* kimi-k2* glm-[4-9]*"),
)
"""Edit format, and patterns of the models that write it."""


def auto(name: str) -> str:
    """The edit format for a model's name as on the command line, such as `openrouter/anthropic/claude-opus-4`."""
    if name.partition("/")[0] in SERVED_HERE:
        return WHOLE
    last = name.rpartition("/")[2].lower()
    patterns = ((pattern, edit_format) for edit_format, listed in TABLE for pattern in listed.split())
    return next((edit_format for pattern, edit_format in patterns if fnmatchcase(last, pattern)), WHOLE)


def split(text: str, default_format: str) -> tuple[str, str]:
    """Name and edit format; what follows a colon counts only if it names a format (`ollama/qwen:7b` does not)."""
    name, _, suffix = text.rpartition(":")
    if name and suffix in registry.names("formats"):
        return name, suffix
    return text, auto(text) if default_format == "auto" else default_format
