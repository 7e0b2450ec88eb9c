"""The map of a repository: what is in it, in which order, within how many tokens; and the agent that finds its way."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retrial.agents.edit import repo_map
from retrial.agents.edit.repo_map import outlines
from tests.conftest import PROJECT
from tests.support.repository_task import Scripted, attempt, repository


def test_a_grammar_that_is_missing_costs_only_its_own_outlines(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from retrial.agents.edit import repo_map\n"
        "if sys.argv[2]: sys.modules[sys.argv[2]] = None\n"
        "files = {'a.go': b'package a\\ntype Cart struct {}\\n', 'a.py': b'class Cart(Base): pass\\n'}\n"
        "print(repo_map.draw('Cart', files, 500, Path(sys.argv[1])))"
    )

    def run(missing: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, str(tmp_path), missing]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)

    without = run("tree_sitter_go")
    assert "class Cart(Base)" in without.stdout
    assert "a.go" in without.stdout
    assert "Cart struct" not in without.stdout
    assert "pip install tree-sitter tree-sitter-go" in without.stderr
    # What was kept without it is not taken for the whole.
    assert "Cart struct" in run("").stdout


def drawn(problem: str, files: Mapping[str, str], folder: Path, budget: int = 2048) -> list[str]:
    """The paths in a map's order."""
    text = repo_map.draw(problem, {path: content.encode() for path, content in files.items()}, budget, folder)
    return [line.rstrip(":") for line in text.splitlines() if line.rstrip(":") in files]


PLAIN = {f"app/part_{number}.py": f"def unrelated_{number}(): pass\n" for number in range(20)}


def test_a_file_that_defines_what_the_problem_names_comes_first(tmp_path: Path) -> None:
    files = {**PLAIN, "app/zzz.py": "class OrderedBasket:\n    pass\n", "app/part_3.py": "# about the basket\n" * 3}
    assert drawn("`OrderedBasket` loses items", files, tmp_path)[0] == "app/zzz.py"


@pytest.mark.parametrize(
    "problem",
    [
        'File "/usr/lib/python3/site-packages/app/part_7.py", line 3, in run',
        "see app.part_7.unrelated for why",
        "it is in app/part_7.py.",
        "look at part_7.py",
    ],
)
def test_a_file_that_the_problem_names_comes_first(problem: str, tmp_path: Path) -> None:
    assert drawn(problem, PLAIN, tmp_path)[0] == "app/part_7.py"


def test_a_file_that_likely_files_refer_to_comes_before_others(tmp_path: Path) -> None:
    files = {**PLAIN, "app/basket.py": "from app.part_9 import unrelated_9\n\ndef pay(): return unrelated_9()\n"}
    assert drawn("the basket cannot pay", files, tmp_path)[:2] == ["app/basket.py", "app/part_9.py"]


def test_what_a_repository_is_hardly_written_in_comes_later(tmp_path: Path) -> None:
    files = {**PLAIN, "app/basket.py": "def pay(): pass\n", "app/basket.js": "function pay() {}\n"}
    assert drawn("pay in the basket", files, tmp_path)[0] == "app/basket.py"


def test_generated_code_is_not_in_the_map_and_a_repository_without_sources_has_one(tmp_path: Path) -> None:
    generated = {"app/lines.js": "x=1;" * 500, "dist/app.py": "class Basket: pass\n"}
    assert generated.keys().isdisjoint(drawn("Basket lines", {**PLAIN, **generated}, tmp_path))
    assert drawn("the manual", {"manual.rst": "Manual", "other.rst": "Other"}, tmp_path) == ["manual.rst", "other.rst"]


def test_definitions_that_the_problem_speaks_of_are_shown_with_what_they_lie_in(tmp_path: Path) -> None:
    methods = "".join(f"    def method_{number}(self): pass\n" for number in range(40))
    files = {"app/a.py": f"class Shop:\n{methods}    def refund_order(self, order): pass\n".encode()}
    text = repo_map.draw("refund of an order is wrong", files, 300, tmp_path)
    assert "  class Shop\n" in text
    assert "    ...\n    def refund_order(self, order)\n" in text
    assert text.count("def ") < 10


@pytest.mark.parametrize("budget", [1, 10, 100, 500, 2048, 5000])
def test_a_map_fills_its_budget_and_no_more(budget: int, tmp_path: Path) -> None:
    files = {path: content.encode() for path, content in three_hundred_files().items()}
    text = repo_map.draw("an invoice is rounded", files, budget, tmp_path)
    assert math.ceil(repo_map.weigh(text)) <= budget
    assert math.ceil(repo_map.weigh(text)) > budget - 20


def test_the_same_map_is_drawn_in_every_process_with_and_without_what_was_kept(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from retrial.agents.edit import repo_map\n"
        "from tests.agents.edit.repo_map import test_repo_map as t\n"
        "files = {path: content.encode() for path, content in t.three_hundred_files().items()}\n"
        "sys.stdout.write(repo_map.draw('an invoice is rounded', files, 2048, Path(sys.argv[1])))"
    )
    maps = set()
    for seed, folder in (("1", "a"), ("2", "a"), ("3", "b")):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, str(tmp_path / folder)]
        maps.add(subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, check=True).stdout)
    assert len(maps) == 1


def test_outlines_are_kept_by_content(tmp_path: Path) -> None:
    files = {path: content.encode() for path, content in PLAIN.items()}
    first = outlines.read_all(files, tmp_path)
    moved = {f"elsewhere/{path}": content for path, content in files.items()}
    assert list(outlines.read_all(moved, tmp_path).values()) == list(first.values())
    assert kept(tmp_path) == len(PLAIN)
    outlines.read_all({"new.py": b"x = 1\n"}, tmp_path)
    assert kept(tmp_path) == len(PLAIN) + 1
    # The same text is another program in another language.
    outlines.read_all({"new.ts": b"let x = 1\n", "new.tsx": b"let x = 1\n", "new.js": b"let x = 1\n"}, tmp_path)
    assert kept(tmp_path) == len(PLAIN) + 4


def kept(folder: Path) -> int:
    with sqlite3.connect(folder / outlines.NAME) as database:
        (number,) = database.execute("SELECT count(*) FROM outlines").fetchone()
    database.close()
    return int(number)


def test_a_broken_database_is_begun_anew(tmp_path: Path) -> None:
    files = {path: content.encode() for path, content in PLAIN.items()}
    first = outlines.read_all(files, tmp_path)
    (tmp_path / outlines.NAME).write_bytes(b"this is no database at all\n" * 500)
    assert outlines.read_all(files, tmp_path) == first
    assert outlines.read_all(files, tmp_path) == first
    assert kept(tmp_path) == len(PLAIN)


def test_an_outline_that_was_kept_by_halves_is_read_again(tmp_path: Path) -> None:
    files = {path: content.encode() for path, content in PLAIN.items()}
    first = outlines.read_all(files, tmp_path)
    with sqlite3.connect(tmp_path / outlines.NAME) as database:
        database.execute("UPDATE outlines SET outline = x'0102'")
    database.close()
    assert outlines.read_all(files, tmp_path) == first


def test_a_map_is_drawn_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert drawn("see app/part_7.py", PLAIN, tmp_path / "file" / "below")[0] == "app/part_7.py"


def test_threads_and_processes_may_keep_outlines_at_once(tmp_path: Path) -> None:
    files = {path: content.encode() for path, content in three_hundred_files().items()}
    code = (
        "import sys; from pathlib import Path\n"
        "from retrial.agents.edit.repo_map import outlines\n"
        "from tests.agents.edit.repo_map import test_repo_map as t\n"
        "files = {path: content.encode() for path, content in t.three_hundred_files().items()}\n"
        "outlines.read_all(files, Path(sys.argv[1]))"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=PROJECT) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: outlines.read_all(files, tmp_path), range(4)))
    assert [other.wait() for other in others] == [0, 0]
    assert all(each == found[0] for each in found)
    assert kept(tmp_path) == len(set(files.values()))


# A repository of our own with 300 files in several languages. One of them is to blame.
WORDS = ("order", "stock", "parcel", "client", "ledger", "voucher", "report", "session", "channel", "signal")
FORMS = {
    "py": 'class {title}{number}:\n    """Keeps a {word}."""\n\n    def load_{word}(self, key):\n        return key\n',
    "js": "class {title}{number} {{\n  load{title}(key) {{ return key }}\n}}\nmodule.exports = {title}{number}\n",
    "go": "package shop\n\nfunc Load{title}{number}(key string) string {{\n\treturn key\n}}\n",
    "rs": "pub fn load_{word}_{number}(key: u32) -> u32 {{\n    key\n}}\n",
    "java": "class {title}{number} {{\n  int load{title}(int key) {{ return key; }}\n}}\n",
    "cpp": "int load_{word}_{number}(int key) {{ return key; }}\n",
}
BLAMED = "shop/billing/amounts.py"
WRONG = """\
from decimal import ROUND_DOWN, Decimal


def invoice_total(lines):
    return sum((line.price * line.count for line in lines), Decimal(0)).quantize(Decimal("0.01"), ROUND_DOWN)
"""
PROBLEM = """\
Totals of invoices are a cent too low

An invoice over three items at 0.335 each shows 1.00, it should be 1.01: the total is rounded down and not half up.
"""


def three_hundred_files() -> dict[str, str]:
    files = {BLAMED: WRONG, "tests/test_amounts.py": "from shop.billing.amounts import invoice_total\n"}
    forms = list(FORMS.items())
    for number in range(298):
        word, (suffix, form) = WORDS[number % len(WORDS)], forms[number % len(forms)]
        text = form.format(word=word, title=word.title(), number=number)
        files[f"shop/{word}s/{word}_{number}.{suffix}"] = text
    return files


def names_the_likely_file(told: str) -> str:
    """As a model would: the first file of the map below which stands a definition with words of the problem."""
    found = re.search(r"^(\S+\.\w+):\n(?:  .*\n)*?  .*\binvoice_total\b", told, re.MULTILINE)
    assert found, told
    return f"The total is made in {found.group(1)}:\n\n{found.group(1)}\n"


def mends_it(told: str) -> str:
    path, content = re.findall(r"^(\S+)\n```\n(.*?)\n```$", told, re.MULTILINE | re.DOTALL)[-1]
    return f"{path}\n```\n{content.replace('ROUND_DOWN', 'ROUND_HALF_UP')}\n```\n"


@pytest.mark.parametrize("map_tokens", [300, 2048])
def test_the_agent_finds_and_edits_the_right_file_of_300_through_the_map(
    map_tokens: int, home: Path, tmp_path: Path
) -> None:
    files = {path: content.encode() for path, content in three_hundred_files().items()}
    assert len(files) == 300
    model = Scripted(names_the_likely_file, mends_it)
    found = attempt(repository(files, PROBLEM), model, tmp_path, map_tokens=map_tokens)
    assert found.unverified
    assert re.findall(r"^\+\+\+ b/(.*)", found.counted, re.MULTILINE) == [BLAMED]
    assert "ROUND_HALF_UP" in found.counted
    shown = model.told[0].partition("matter here:\n\n")[2].partition("\n\nWhich of its files")[0]
    assert map_tokens - 20 < math.ceil(repo_map.weigh(f"{shown}\n")) <= map_tokens
    assert "tests/" not in shown
