"""Python's quirks: what its lint says, and which file names it keeps for itself."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.languages.python import LINT_MEMORY_MB, TOO_MUCH, make
from retrial.patches import policy
from tests.conftest import PROJECT


def lint(before: str, after: str) -> tuple[str, ...]:
    return make().lint({"a.py": before.encode()}, {"a.py": after.encode()})


def test_an_undefined_name_is_named_with_its_place() -> None:
    (error,) = lint("", "def f():\n    return missing\n")
    assert error.startswith("a.py:2: F821")
    assert "missing" in error


def test_a_syntax_error_is_named_with_its_place() -> None:
    assert lint("", "def f(:\n")[0].startswith("a.py:1: ")


def test_errors_that_the_base_has_do_not_count_even_on_other_lines() -> None:
    assert lint("x = missing\n", "import os\n\nx = missing\n") == ()
    assert len(lint("x = missing\n", "x = missing\ny = missing\n")) == 1


def test_style_is_not_an_error() -> None:
    assert lint("", "import os,sys\nl=1;x = lambda: 1\nfrom typing import *\n") == ()


def test_new_syntax_is_not_an_error() -> None:
    assert lint("", "type A = int\ndef f[T](x: T) -> T:\n    return x\nf'{'a'}'\n") == ()


def test_many_threads_may_lint_at_once_from_the_start() -> None:
    program = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from retrial.languages.python import make
sys.setswitchinterval(1e-6)
start = threading.Barrier(8)
def lint(_):
    start.wait()
    return make().lint({}, {"a.py": b"x = 1"})
with ThreadPoolExecutor(8) as pool:
    assert list(pool.map(lint, range(8))) == [()] * 8
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_silenced_error_is_an_error() -> None:
    assert lint("", "x = missing  # noqa\n")


@pytest.mark.parametrize(
    "name",
    [
        "conftest.py",
        "pytest.py",
        "sitecustomize.py",
        "setup.py",
        "test_more.py",
        "more_test.py",
        "unittest.py",
        "random.py",
    ],
)
def test_a_file_that_a_runner_would_pick_up_by_its_name_does_not_count(name: str) -> None:
    task = Exercism(DEMO, "demo", languages=("python",)).tasks()[0]
    assert not policy.writable(task, name, task.tree.files())


def test_a_new_module_beside_the_solution_counts() -> None:
    task = Exercism(DEMO, "demo", languages=("python",)).tasks()[0]
    assert policy.writable(task, "my_helper.py", task.tree.files())
    assert not policy.writable(task, "sub/my_helper.py", task.tree.files())
    assert not policy.writable(task, "my_helper.txt", task.tree.files())


def test_a_file_in_which_every_byte_is_an_error_is_one_error_and_does_not_take_the_machines_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert make().lint({}, {"a.py": bytes(2_000_000)}) == (TOO_MUCH,)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, LINT_MEMORY_MB << 10)


@pytest.mark.parametrize(
    "line",
    [
        "    os._exit(0)",
        "import atexit",
        "from _pytest.runner import runtestprotocol",
        "unittest.TestCase.assertEqual = print",
        "    frame = sys._getframe(1)",
        "    return inspect.stack()[1]",
        "    def __eq__(self, other):",
        "text = open('add_test.py').read()",
        'folder = os.environ["RETRIAL_REPORTS"]',
        "exec(code)",
    ],
)
def test_a_line_that_reaches_for_the_tests_is_to_be_looked_at(line: str) -> None:
    assert suspected(line)


@pytest.mark.parametrize(
    "line",
    [
        "WORD = re.compile(r'[a-z]+')",
        "    raise ValueError('the test is over')",
        "import sys, collections",
        "    assert amount >= 0",
        "    self.model.eval()",
        "from latest_testimony import retest",
    ],
)
def test_an_ordinary_line_is_not(line: str) -> None:
    assert not suspected(line)


def suspected(line: str) -> list[str]:
    return [what for pattern, what in make().suspicious if re.search(pattern, line)]
