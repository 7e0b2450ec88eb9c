"""Rules of the house that a reader should not have to remember."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from retrial import registry
from tests.conftest import PROJECT

PRODUCT = [*sorted((PROJECT / "retrial").rglob("*.py")), PROJECT / "harness.py", PROJECT / "report.py"]

MOST_ARGUMENTS = 6
MAY_SEE_ANSWERS = {
    "retrial/score/scorer.py",
    "retrial/score/inputs.py",
    "retrial/grading/reference_runs.py",
    "retrial/score/calibrate.py",
    "retrial/agents/gold.py",
}


@functools.cache
def nodes() -> Sequence[tuple[str, ast.AST]]:
    return [
        (path.relative_to(PROJECT).as_posix(), node)
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_only_scoring_and_the_gold_agent_ask_for_answers() -> None:
    callers = {
        name
        for name, node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "answer"
    }
    assert callers <= MAY_SEE_ANSWERS


def test_only_the_benchmark_itself_opens_the_secrets_of_its_rows() -> None:
    callers = {
        name
        for name, node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "secrets"
    }
    assert callers <= {"retrial/benchmarks/swebench/__init__.py", "retrial/benchmarks/swebench/rows.py"}


def test_functions_stay_short() -> None:
    long = [
        f"{name}:{node.lineno} {node.name}"
        for name, node in nodes()
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 45
    ]
    assert long == []


def test_functions_take_at_most_six_arguments() -> None:
    """More of them are an object that is missing."""
    many = [
        f"{name}:{node.lineno} {node.name}"
        for name, node in nodes()
        if isinstance(node, ast.FunctionDef) and len(arguments(node)) > MOST_ARGUMENTS
    ]
    assert many == []


def arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    names = [
        each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if each
    ]
    return [name for name in names if name not in ("self", "cls")]


def test_only_the_command_line_prints_results() -> None:
    printing = {
        name
        for name, node in nodes()
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "print"
        and not any(keyword.arg == "file" for keyword in node.keywords)
    }
    assert len(printing) > 3
    assert sorted(name for name in printing if not name.startswith("retrial/cli/")) == []


def test_one_broad_except_stands_at_the_executors_edge() -> None:
    broad = [
        name
        for name, node in nodes()
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
    ]
    assert broad == ["retrial/executors/local.py"]


def test_the_docker_folder_does_not_hide_the_docker_package() -> None:
    assert not (PROJECT / "docker" / "__init__.py").exists()


def test_help_imports_nothing_heavy() -> None:
    heavy = {"openai", "docker", "git", "datasets", "xllamacpp", "yaml", "genai_prices", "tqdm", "pytest", "ray"}
    heavy |= {"tree_sitter", "sqlite3", "litellm", "jinja2", "pygments", "pygal", "markdown_it", "junitparser"}
    for script in ("harness", "report"):
        code = (
            f"import sys; sys.argv = ['{script}.py', '--help']\n"
            f"import runpy\n"
            f"try:\n    runpy.run_path('{script}.py', run_name='__main__')\n"
            f"except SystemExit:\n    pass\n"
            f"sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_folder_of_parts_is_named_in_the_guide() -> None:
    guide = (PROJECT / "docs" / "adding-a-part.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (PROJECT / "retrial").glob("*/__init__.py")}
    folders = {folder for folder in folders if registry.names(folder)}
    assert len(folders) > 5
    assert [folder for folder in folders if f"retrial/{folder}/" not in guide] == []


def test_the_readme_names_every_option() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    for script in ("harness.py", "report.py"):
        done = subprocess.run(
            [sys.executable, script, "--help"], cwd=PROJECT, capture_output=True, text=True, check=True
        )
        options = set(re.findall(r"(?<= )--[a-z][a-z-]*", done.stdout.partition("options:")[2])) - {"--help"}
        assert len(options) > 10
        assert sorted(option for option in options if f"`{option}`" not in readme) == []


def test_no_file_names_a_place_of_the_machine_it_was_written_on() -> None:
    words = ["/wor" + "k/", "/far" + "m/", "/roo" + "t/"]
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split()
    found = [
        name
        for name in listed
        if (PROJECT / name).is_file()
        and any(word in Path(PROJECT / name).read_text(encoding="utf-8", errors="replace") for word in words)
    ]
    assert found == []
