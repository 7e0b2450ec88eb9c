"""Imports point downwards: a folder may import only folders of a lower layer, at the top of a file or in a function."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import PROJECT

PACKAGE = PROJECT / "retrial"
LAYERS = (
    (
        "types",
        "checks",
        "chat",
        "attempts",
        "errors",
        "protocols",
        "language",
        "registry",
        "options",
    ),  # values and contracts
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


GRADING = RANK["grading"]
BY_NAME = {
    "retrial.registry",
    # These import a package of others, which may be missing or is chosen by its name; none of ours.
    "retrial.agents.edit.repo_map.grammars",
    "retrial.benchmarks.swebench.official_grader",
    "retrial.benchmarks.swebench.sources",
    "retrial.languages.canaries.syntax",
    "retrial.models.litellm",
}
"""All that import by name; our own modules, only the registry."""
SEAMS = ("types", "checks", "protocols", "grading")
"""What knows no source of tasks: a check names its grader."""
MOST_FOLDERS, MOST_FILES, MOST_TOP_FILES, MOST_CONTRACT_MODULES, MOST_LINES = 15, 13, 10, 8, 350


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
    pairs = {(module, other) for module, path in MODULES.items() for other in imports(path) if other != "retrial"}
    assert sorted(f"{module} -> {other}" for module, other in pairs if points_upwards(module, other)) == []


def test_only_the_registry_imports_our_modules_by_name() -> None:
    callers = {module for module, path in MODULES.items() if any(map(imports_by_name, nodes(path)))}
    assert callers == BY_NAME


def test_only_the_grader_of_a_check_is_opened_from_below() -> None:
    opened = [(module, call, kind) for module, path in MODULES.items() for call, kind in opened_parts(path)]
    parts = {(module, kind) for module, call, kind in opened if call == "module"}
    assert [
        each for each in parts if rank_of(ast.literal_eval(each[1]).partition(".")[0]) > rank_of(folder_of(each[0]))
    ] == []
    below = {
        (module, name) for module, call, name in opened if call == "load" and rank_of(folder_of(module)) <= GRADING
    }
    assert below == {
        ("retrial.grading.judge", "check.grader"),
        ("retrial.grading.judge", "check.result_parser"),
        ("retrial.grading.reference_runs", "language.canaries"),
    }


def opened_parts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the function of the registry that a file calls, and its first argument."""
    for node in nodes(path):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called in ("registry.module", "registry.load"):
            yield called.removeprefix("registry."), ast.unparse(node.args[0])


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def imports_by_name(node: ast.AST) -> bool:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return called.rpartition(".")[2] in ("import_module", "__import__", "spec_from_file_location")


def test_a_benchmark_is_known_to_grading_by_the_name_of_its_grader_alone() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items() if folder_of(module) in SEAMS}
    mentioned = [module for module, text in texts.items() if re.search("swe-?bench|exercism", text, re.IGNORECASE)]
    assert mentioned == []


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


def test_no_file_is_too_long_to_be_read_in_one_go() -> None:
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: count for module, count in lines.items() if count > MOST_LINES} == {}


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
    modules = loaded("import retrial.cli.harness")
    assert len(modules) > 20
    assert sorted(name for name in modules if name.startswith("retrial.score")) == []


def test_a_grader_is_loaded_when_a_check_is_graded_and_not_before() -> None:
    assert "retrial.benchmarks.swebench.grader" not in loaded("import retrial.benchmarks.swebench, retrial.score.run")
