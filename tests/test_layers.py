"""Imports point downwards: a folder may import only folders of a lower layer, at the top of a file or in a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import PROJECT

PACKAGE = PROJECT / "retrial"
LAYERS = (
    ("types", "chat", "attempts", "errors", "protocols", "language", "registry", "options"),  # values and contracts
    ("system",),
    ("patches",),
    ("store", "executors"),
    ("sandboxes", "languages", "models"),
    ("grading",),
    ("formats", "benchmarks", "reports"),
    ("agents",),
    ("predict", "score"),  # joined by files only
    ("cli",),
    ("__init__", "__main__"),  # the doors: `import retrial`, `python -m retrial`
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


UPWARDS: tuple[str, ...] = (
    "retrial.grading.calibration -> retrial.benchmarks.swebench.grader",
    "retrial.grading.judge -> retrial.benchmarks.swebench.grader",
    "retrial.grading.reference_runs -> retrial.benchmarks.swebench.canaries",
    "retrial.grading.run_check -> retrial.benchmarks.swebench.container_script",
    "retrial.grading.run_check -> retrial.benchmarks.swebench.reinstall",
)
"""Imports that are yet to be turned round. The list may only shrink."""


def folder_of(module: str) -> str:
    """Return the folder, or the file of layer 0, that a module belongs to."""
    return [*module.split("."), "__init__"][1]


def rank_of(folder: str) -> int:
    # A dunder of the package itself, such as __version__, is a value. An unknown folder is above everything.
    return RANK.get(folder, 0 if folder.startswith("__") else len(LAYERS))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for name in names:
            full = f"{base}{name}"
            if full.partition(".")[0] == "retrial":
                yield full if full in MODULES else full.rpartition(".")[0]


def points_upwards(module: str, other: str) -> bool:
    own, theirs = folder_of(module), folder_of(other)
    return theirs != own and (rank_of(theirs) > rank_of(own) or rank_of(theirs) == rank_of(own) > 0)


def test_imports_point_downwards() -> None:
    upwards = {
        f"{module} -> {other}"
        for module, path in MODULES.items()
        for other in imports(path)
        if other != "retrial" and points_upwards(module, other)
    }
    assert sorted(upwards - set(UPWARDS)) == []
    assert sorted(set(UPWARDS) - upwards) == []  # it may only shrink
