"""Small benchmarks in Exercism layout, written where a test wants them."""

from __future__ import annotations

import json
from pathlib import Path

STUB = "def add(a, b):\n    pass\n"
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
TESTS = """\
from {module} import add


def test_small_numbers():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0
"""


def write_exercise(
    root: Path,
    slug: str = "sum-up",
    *,
    stub: str = STUB,
    tests: str = TESTS,
    example: str = RIGHT,
    editor: dict[str, str] | None = None,
    extra: dict[str, str] | None = None,
    **config: object,
) -> Path:
    """One exercise below `root/python/exercises/practice/`; returns `root`."""
    module = slug.replace("-", "_")
    folder = root / "python" / "exercises" / "practice" / slug
    files = {
        f"{module}.py": stub,
        f"{module}_test.py": tests.replace("{module}", module),
        ".meta/example.py": example,
        ".docs/instructions.md": f"# {slug}\n\nWrite `add(a, b)`, which returns the sum of two numbers.\n",
        **(editor or {}),
        **(extra or {}),
    }
    names = {"solution": [f"{module}.py"], "test": [f"{module}_test.py"], "example": [".meta/example.py"]}
    files[".meta/config.json"] = json.dumps({"files": {**names, "editor": list(editor or {})}, **config})
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root


def reply(content: str, path: str = "sum_up.py") -> str:
    """What a model says to write one whole file."""
    return f"Here it is.\n\n{path}\n```python\n{content}```\n"


def write_replies(path: Path, *replies: object) -> Path:
    """A file for `-m replay/FILE`; texts, or whole lines as dicts."""
    lines = [{"text": each} if isinstance(each, str) else each for each in replies]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
