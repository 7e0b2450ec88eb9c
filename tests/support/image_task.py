"""A SWE-bench task of our own, small enough for tests: an image that holds a git repository, and its row.

`image()` builds the image once and names it by what it is made from; `repository(folder)` lays the same commits out on
the host. Nothing here is anybody else's.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from retrial.errors import EnvironmentMissing
from retrial.types import Environment

TREE = "/testbed"
INSTANCE = "retrial__calc-1"
BASE_COMMIT = "6183f914d24ce79b3adb21f1a83e24bd2f54ac6e"
"""Of `repository` and of the image alike: names, dates and contents are fixed. The image is not built if it differs."""

CORE = """\
def add(a, b):
    return a + b


def sub(a, b):
    return b - a
"""
TESTS = """\
from calc import add


def test_add():
    assert add(2, 3) == 5


def test_add_nothing():
    assert add(2, 0) == 2
"""
NEW_TESTS = """\
from calc import add, sub


def test_add():
    assert add(2, 3) == 5


def test_add_nothing():
    assert add(2, 0) == 2


def test_sub():
    assert sub(5, 3) == 2


def test_sub_nothing():
    assert sub(5, 0) == 5
"""
FILES: Mapping[str, str] = {
    "README.md": "# calc\n\nAdds and subtracts.\n",
    "calc/__init__.py": "from calc.core import add, sub\n",
    "calc/core.py": CORE,
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
    '[project]\nname = "calc"\nversion = "1.0"\n\n[tool.setuptools]\npackages = ["calc"]\n',
    ".gitignore": "*.egg-info/\n__pycache__/\n.pytest_cache/\n",
}

# The same in the image and on the host: two commits, of which the second is the task's base.
COMMITS = """\
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Retrial GIT_AUTHOR_EMAIL=tests@retrial.invalid GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=Retrial GIT_COMMITTER_EMAIL=tests@retrial.invalid GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main .
git config user.name Retrial
git config user.email tests@retrial.invalid
git add README.md
git commit -q -m 'Begin'
git add .
git commit -q -m 'Add and subtract'
"""

# What pip finds in its variables lets it install without a network; jobs must leave an image's variables alone.
DOCKERFILE = f"""\
ARG BASE
FROM ${{BASE}}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends git patch python3 python3-pip python3-pytest python3-setuptools \\
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_NO_BUILD_ISOLATION=0 PIP_NO_INDEX=1 PIP_ROOT_USER_ACTION=ignore
COPY commits /opt/commits
COPY tree {TREE}
WORKDIR {TREE}
RUN sh /opt/commits && test "$(git rev-parse HEAD)" = {BASE_COMMIT}
RUN python3 -m pip install -e .
"""


def changed(path: str, before: str, after: str) -> str:
    """A patch as git writes it."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


GOLD = changed("calc/core.py", CORE, CORE.replace("b - a", "a - b"))
TEST_PATCH = changed("tests/test_calc.py", TESTS, NEW_TESTS)

EVAL_SCRIPT = f"""\
#!/bin/bash
set -uxo pipefail
cd {TREE}
git config --global --add safe.directory {TREE}
cd {TREE}
git status
git show
git -c core.fileMode=false diff {BASE_COMMIT}
python3 -m pip install -e .
git checkout {BASE_COMMIT} tests/test_calc.py
git apply -v - <<'EOF_471147114711'
{TEST_PATCH}
EOF_471147114711
: '>>>>> Start Test Output'
python3 -m pytest -rA tests/test_calc.py
: '>>>>> End Test Output'
git checkout {BASE_COMMIT} tests/test_calc.py
"""


def repository(folder: Path) -> str:
    """Make the task's repository in a new folder of the host; the name of its last commit."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    # Without the variables by which a hook or a caller says where its own repository is.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["sh", "-c", COMMITS], cwd=folder, env=clean, check=True)
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, env=clean, check=True, stdout=subprocess.PIPE)
    return said.stdout.decode().strip()


def name(more: str = "") -> str:
    """What the image is called, built or not."""
    from retrial.sandboxes.docker import images

    return f"retrial-test/calc:{hashlib.sha256(_context(more) + images.base().encode()).hexdigest()[:12]}"


@functools.cache
def image(more: str = "") -> str:
    """Build the image unless it is there, and return its name. `more` is what its Dockerfile has besides.

    Raises: EnvironmentMissing.
    """
    from docker.api import APIClient
    from docker.utils import kwargs_from_env

    from retrial.sandboxes.docker import images

    with closing(APIClient(version="auto", timeout=600, **kwargs_from_env())) as client:
        if not images.identity(client, name(more)):
            steps: Iterable[Mapping[str, Any]] = client.build(
                fileobj=io.BytesIO(_context(more)),
                custom_context=True,
                tag=name(more),
                buildargs={"BASE": images.base()},
                network_mode="host",
                rm=True,
                forcerm=True,
                decode=True,
            )
            try:
                images.follow(steps)
            except images.FAILURES as error:
                raise EnvironmentMissing(f"The image {name(more)} cannot be built: {images.words(error)}") from error
    return name(more)


def environment(**changes: str) -> Environment:
    """Where jobs of the task run."""
    fields: dict[str, Any] = {"name": INSTANCE, "image": changes.get("image") or image(), "language": "", "tree": TREE}
    return Environment(**{**fields, **changes})


def row(**changes: object) -> dict[str, object]:
    """The task as a dataset of SWE-bench 5 has it."""
    return {
        "instance_id": INSTANCE,
        "repo": "retrial/calc",
        "version": "1.0",
        "base_commit": BASE_COMMIT,
        "environment_setup_commit": BASE_COMMIT,
        "created_at": "2020-01-01T00:00:00Z",
        "problem_statement": "sub gives the wrong sign\n\n`calc.sub(5, 3)` is -2; it should be 2.\n",
        "hints_text": "",
        "patch": GOLD,
        "test_patch": TEST_PATCH,
        "FAIL_TO_PASS": ["tests/test_calc.py::test_sub", "tests/test_calc.py::test_sub_nothing"],
        "PASS_TO_PASS": ["tests/test_calc.py::test_add", "tests/test_calc.py::test_add_nothing"],
        "eval_script": EVAL_SCRIPT,
        "image": name(),
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        **changes,
    }


@functools.cache
def _context(more: str) -> bytes:
    """What the engine builds the image from: the same bytes for the same files."""
    texts = {
        "Dockerfile": DOCKERFILE + more,
        "commits": COMMITS,
        **{f"tree/{path}": text for path, text in FILES.items()},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, text in texts.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text.encode()), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()
