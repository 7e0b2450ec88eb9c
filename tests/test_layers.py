"""Imports point downwards: a folder may import only folders of a lower layer, at the top of a file or in a function."""

from __future__ import annotations

import ast
import subprocess
import sys
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


UPWARDS = ("grading", "retrial.benchmarks.swebench")
"""The one import that points upwards: grading knows SWE-bench's grader until a check names its own (issue 19)."""
MOST_FOLDERS, MOST_FILES, MOST_TOP_FILES, MOST_CONTRACT_MODULES = 15, 13, 10, 8


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


def is_allowed(module: str, other: str) -> bool:
    return folder_of(module) == UPWARDS[0] and f"{other}.".startswith(f"{UPWARDS[1]}.")


def test_imports_point_downwards() -> None:
    pairs = {(module, other) for module, path in MODULES.items() for other in imports(path) if other != "retrial"}
    upwards = {pair for pair in pairs if points_upwards(*pair)}
    assert sorted(f"{module} -> {other}" for module, other in upwards if not is_allowed(module, other)) == []
    assert any(is_allowed(*pair) for pair in upwards)  # once it is gone, so is the exception


def test_a_name_with_an_underscore_is_private_to_its_folder() -> None:
    foreign = {
        f"{module} imports {name} of {base}"
        for module, path in MODULES.items()
        for base, name in named_imports(path)
        if any(part.startswith("_") and not part.endswith("__") for part in [*base.split("."), name])
        and folder_path(base) != folder_path(module)
    }
    assert sorted(foreign) == []


def named_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that a file imports from ours."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "retrial":
            yield from ((str(node.module), alias.name) for alias in node.names)


def folder_path(module: str) -> str:
    return module if (PROJECT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def test_the_tree_stays_small_enough_to_find_a_room_in() -> None:
    folders = [path.parent for path in PACKAGE.rglob("__init__.py")]
    sizes = {folder.relative_to(PROJECT).as_posix(): len(list(folder.glob("*.py"))) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}
    assert sizes["retrial"] <= MOST_TOP_FILES
    assert len([folder for folder in folders if folder.parent == PACKAGE]) <= MOST_FOLDERS


def test_every_folder_says_in_at_most_three_lines_what_belongs_there() -> None:
    texts = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in packages()}
    lines = {path: [line for line in (text or "").splitlines() if line] for path, text in texts.items()}
    assert [str(path) for path, said in lines.items() if not 1 <= len(said) <= 3] == []


def packages() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("__init__.py")) if path.parent != PACKAGE]


def loaded(code: str) -> set[str]:
    """Return the modules of ours that a fresh interpreter has loaded after this."""
    code += "\nimport sys; print(*[name for name in sys.modules if name.startswith('retrial')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_contracts_load_little_else() -> None:
    assert len(loaded("import retrial.protocols")) <= MOST_CONTRACT_MODULES


def test_phase_1_loads_nothing_of_phase_2() -> None:
    run = (
        "import runpy, sys; sys.argv = ['harness.py', '--help']\ntry: runpy.run_path('harness.py', run_name='__main__')"
    )
    modules = loaded(f"{run}\nexcept SystemExit: pass")
    assert len(modules) > 20
    assert sorted(name for name in modules if name.startswith("retrial.score")) == []
