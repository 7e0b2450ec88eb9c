"""Real material, changed as accidents and forgers would. `RETRIAL_FUZZ=long` tries many more, other ones each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hypothesis import settings
from hypothesis import strategies as st

from tests.tiers import examples

NAMES = (
    "../escape.py", "/etc/passwd", ".git/config", ".GIT/hooks/x", "sub/.git /x", "git~1", "a//b", "./add.py",
    "link/x.py", "link.py", "add.py/x.py", "sub/../../x", "", "\\", '"', "\t", "\0", "\ud800", "\udce9", "é.py",
    "x" * 300, "conftest.py", "add_test.py", "sub", "dev/null", "CON", "d/" * 300 + "x",
)  # fmt: skip


def fuzz(full: int) -> settings:
    return settings(max_examples=examples(full))


Change = Callable[[list[str], int, str], list[str]]

LINES: Mapping[str, Change] = {
    "drop": lambda lines, at, word: lines[:at] + lines[at + 1 :],
    "repeat": lambda lines, at, word: lines[: at + 1] + lines[at:],
    "swap": lambda lines, at, word: lines[:at] + lines[at : at + 2][::-1] + lines[at + 2 :],
    "insert": lambda lines, at, word: [*lines[:at], word, *lines[at:]],
    "replace": lambda lines, at, word: [*lines[:at], word, *lines[at + 1 :]],
    "cut": lambda lines, at, word: lines[:at],
    "cut inside": lambda lines, at, word: [*lines[:at], lines[at][: len(lines[at]) // 2]],
    "prefix": lambda lines, at, word: [*lines[:at], word[:1] + lines[at], *lines[at + 1 :]],
    "shorten": lambda lines, at, word: [*lines[:at], lines[at][1:], *lines[at + 1 :]],
    "return": lambda lines, at, word: [*lines[:at], lines[at] + "\r", *lines[at + 1 :]],
    "last word": lambda lines, at, word: [*lines[:at], lines[at].rpartition(" ")[0] + " " + word, *lines[at + 1 :]],
    "move": lambda lines, at, word: lines[at:] + lines[:at],
}


def changed_lines(words: Sequence[str]) -> st.SearchStrategy[Callable[[str], str]]:
    """Changes of a text, line by line; `words` are put in."""
    step = st.tuples(st.sampled_from(sorted(LINES)), st.integers(0, 400), st.sampled_from(words))

    def change(steps: Sequence[tuple[str, int, str]]) -> Callable[[str], str]:
        def changed(text: str) -> str:
            lines = text.split("\n")
            for kind, at, word in steps:
                lines = LINES[kind](lines, at % len(lines), word) or [""]
            return "\n".join(lines)

        return changed

    return st.lists(step, min_size=1, max_size=5).map(change)


def changed_bytes(words: Sequence[bytes]) -> st.SearchStrategy[Callable[[bytes], bytes]]:
    """Changes of bytes: of one, of a stretch, of where two stretches stand."""
    place = st.integers(0, 100_000)
    kinds = st.sampled_from(("flip", "drop", "repeat", "insert", "overwrite", "cut", "move"))
    step = st.tuples(kinds, place, st.integers(1, 40), st.sampled_from(words))

    def change(steps: Sequence[tuple[str, int, int, bytes]]) -> Callable[[bytes], bytes]:
        def changed(content: bytes) -> bytes:
            for kind, place, size, word in steps:
                content = _changed(content, kind, place % (len(content) + 1), size, word)
            return content

        return changed

    return st.lists(step, min_size=1, max_size=4).map(change)


def _changed(content: bytes, kind: str, at: int, size: int, word: bytes) -> bytes:
    before, stretch, after = content[:at], content[at : at + size], content[at + size :]
    match kind:
        case "flip":
            return before + bytes(byte ^ (1 << size % 8) for byte in stretch[:1]) + content[at + 1 :]
        case "drop":
            return before + after
        case "repeat":
            return before + stretch + stretch + after
        case "insert":
            return before + word + stretch + after
        case "overwrite":
            return before + word + after
        case "cut":
            return before
        case _:
            return stretch + before + after
