"""What the pages say: nothing that is not in results.json, nothing of a model's as HTML, everything visible."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from retrial.chat import Usage
from retrial.cli import compare
from retrial.reports import page
from retrial.reports.analysis.cases import Case
from retrial.reports.analysis.repeats import together
from retrial.reports.analysis.rungs import GroupMember, side_by_side
from retrial.reports.comparison_table import Comparison
from retrial.reports.page import charts as page_charts
from retrial.reports.page import instance, shown
from retrial.reports.page.instance import TextAllowance, visible
from retrial.reports.records import GroupResults
from retrial.store.journal import sealed
from retrial.store.manifest import ListedRun
from retrial.store.runs import Run
from retrial.system.secrets import SecretMasker
from retrial.types import Status
from tests.support import synthetic_run
from tests.support.plain import plain
from tests.support.sides import content as scored
from tests.support.sides import side

TASKS = 40
VOID = {"meta", "link", "br", "input", "img", "hr"}


class Reader(HTMLParser):
    """Texts of a page, each with the elements around it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.around: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, list[tuple[str, dict[str, str]]]]] = []
        self.tags: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.tags.append((tag, known))
        if tag not in VOID:
            self.around.append((tag, known))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self.around and self.around.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((data, list(self.around)))


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, Any], str]:
    run, results = synthetic_run.write(tmp_path_factory.mktemp("home"), "many", TASKS)
    return run, plain(results), page.render(run, results)


def found_at(content: Any, pointer: str) -> Any:
    for step in pointer.split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        content = content[int(name)] if isinstance(content, list) else content[name]
    return content


def compare_numbers(text: str, content: Mapping[str, Any]) -> int:
    """Every number outside of names, tables of instances and charts is one of results.json; returns how many."""
    compared = 0
    for said, around in read(text).texts:
        inner = around[-1][1] if around else {}
        if "data-from" in inner:
            assert said == shown(found_at(content, inner["data-from"]), inner["data-way"])
            compared += 1
        elif "data-said" in inner:
            assert said == found_at(content, inner["data-said"])
        elif re.search(r"\d", said):
            assert named(around), said
    return compared


def named(around: list[tuple[str, dict[str, str]]]) -> bool:
    """A name or a command, the table of instances (looked at elsewhere), or what is not read as text."""
    return any(
        tag in ("style", "script", "svg", "title", "option")
        or "text" in attributes.get("class", "").split()
        or attributes.get("id") == "table"
        for tag, attributes in around
    )


def test_every_number_of_a_run_is_in_its_results(many: tuple[Run, dict[str, Any], str]) -> None:
    _, content, text = many
    assert compare_numbers(text, content) > 150


def test_every_number_of_the_table_is_in_the_results(many: tuple[Run, dict[str, Any], str]) -> None:
    _, content, text = many
    cells = re.findall(r'(?s)<tr data-place="(\d+)".*?</tr>', text)
    assert [int(place) for place in cells] == list(range(TASKS))
    for place, row in zip(re.findall(r'(?s)<tr data-place="\d+".*?</tr>', text), content["instances"], strict=True):
        inside = [said.strip() for said, _ in read(place).texts if said.strip()]
        total = len(row["tests"])
        assert row["instance_id"] == inside[0]
        assert (f"{row['tests_passed']}/{total}" if total else "–") in inside
        assert f"{row['try']} of {row['tries']}" in inside
        assert shown(row["cost"], "dollars") in inside
        assert shown(row["seconds"], "seconds") in inside
        assert f"{row['prompt_tokens']:,} / {row['completion_tokens']:,}" in inside


def test_every_number_of_several_runs_is_in_their_results(home: Path) -> None:
    repeats = [
        GroupMember(
            listed=ListedRun(run=f"r.{seed}", seed=seed),
            measured=tuple(
                Case(instance_id=name, attempts=(), chosen=1, resolved=resolved)
                for name, resolved in (("a", True), ("b", seed > 0), ("c", False))
            ),
            spent=Usage(cost=0.5),
        )
        for seed in range(3)
    ]
    grid = [GroupMember(listed=ListedRun(run=name, model=name, edit_format="diff")) for name in ("m/1", "m/2")]
    head: dict[str, Any] = {"run": "several", "command": "report.py several", "identity": {}, "selection": []}
    several: list[Comparison | GroupResults] = [
        compare.compared("c", [side("a 1", "+-" * 40), side("b 2", "+++-" * 20), side("c 3", "+" * 80)]),
        GroupResults(**head, kind="repeats", found=together(repeats)),
        GroupResults(**head, kind="grid", found=side_by_side(grid)),
    ]
    for number, found in enumerate(several):
        path = page.write_comparison(Run(home, f"several-{number}"), found)
        assert path
        assert compare_numbers(path.read_text(encoding="utf-8"), plain(found)) > 3


def test_predictions_from_elsewhere_and_an_empty_run_have_pages_too(home: Path) -> None:
    for outcomes in ("+-?e", ""):
        content = scored("foreign", outcomes)
        text = page.render(Run(home, "foreign"), content)
        compare_numbers(text, plain(content))
        # Each family of outcomes has a look of its own.
        looks = {each["class"] for _, each in read(text).tags if each.get("class", "").startswith("outcome ")}
        assert looks == ({"outcome resolved", "outcome unresolved", "outcome not_measured"} if outcomes else set())


def fragments(text: str) -> list[str]:
    packed = [piece for _, piece in page._KEPT.findall(text)]
    return [gzip.decompress(base64.b64decode(each)).decode() for each in packed]


def test_every_instance_is_inside_with_its_patch_chat_tests_and_log(many: tuple[Run, dict[str, Any], str]) -> None:
    run, content, text = many
    patches = run.patches()
    pieces = fragments(text)
    assert len(pieces) == TASKS
    for row, piece in zip(content["instances"], pieces, strict=True):
        said = " ".join(data for data, _ in read(piece).texts)
        assert all(test in said for test in row["tests"])
        assert row["reason"] in said
        assert "Attempt 1: openai/gpt-small" in said
        assert "---- stdout ----" in said
        if patches[row["instance_id"]]:
            assert '<pre class="diff">' in piece


def test_a_page_of_the_same_results_is_the_same_to_the_byte_and_takes_from_the_one_before(home: Path) -> None:
    run, content = synthetic_run.write(home, "again", 3)
    path = page.write(run, content)
    assert path
    first = path.read_bytes()
    marked = _packed("<p>of the page before</p>")
    key, old = page._KEPT.findall(first.decode())[0]
    path.write_bytes(first.replace(old.encode(), marked.encode()))
    page.write(run, content)
    assert marked in path.read_text(encoding="utf-8")
    # Other content has another key.
    content.instances[0] = replace(content.instances[0], reason="something else")
    page.write(run, content)
    assert marked not in path.read_text(encoding="utf-8")
    assert key not in path.read_text(encoding="utf-8")


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) ![x](http://e.example/x.png) <http://e.example/> <javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "```\n</pre><script>alert(1)</script>\n",
    "<!-- --> <style>*{display:none}</style> &lt;script&gt; &#60;script&#62;",
    "# heading\n\n</div></details></td></tr></table><h1>mine</h1>",
    "\x1b[31mred \x1b]8;;http://e.example\x07link\x1b]8;;\x07 \u202eevil\u2066 \x00 \ud800 \r overwritten",
    "+++ b/x\n@@ <b>bold</b> @@\n+<script>alert(1)</script>\n",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_model_says_stays_text(text: str) -> None:
    for made in (instance.render_reply(text), instance.render_diff(text), instance.preformatted(text)):
        known = {"p", "pre", "code", "span", "em", "strong", "ul", "ol", "li", "blockquote", "hr", "br"}
        reader = read(str(made))
        assert {tag for tag, _ in reader.tags} <= known
        assert all(set(attributes) <= {"class", "start"} for _, attributes in reader.tags)
        str(made).encode("utf-8")


def test_what_nobody_would_see_is_shown() -> None:
    assert visible("\x1b[31m \u202eabc \x00 \u200b \ud800 \t\n") == "␛[31m ⟨U+202E⟩abc ␀ ⟨U+200B⟩ ⟨U+D800⟩ \t\n"
    assert visible("ä € 漢字 🙂") == "ä € 漢字 🙂"


def test_hostile_names_and_reasons_stay_text(home: Path) -> None:
    run, content = synthetic_run.write(home, "hostile", 2)
    hostile = replace(
        content,
        not_measured={"x": HOSTILE[0]},
        void={"y": HOSTILE[6]},
        by_language={HOSTILE[1]: content.by_language["cpp"]},
        instances=[
            replace(
                row,
                reason=HOSTILE[0],
                language=HOSTILE[1],
                model='"><script>alert(1)</script>',
                void=HOSTILE[6],
                tests={HOSTILE[0]: Status.FAILED},
            )
            for row in content.instances
        ],
    )
    text = page.render(run, hostile)
    ours = (page.HERE / "page.js").read_text(encoding="utf-8")
    scripts = re.findall(r"(?s)<script[^>]*>(.*?)</script>", text)
    assert [each for each in scripts if "alert" in each] == []
    assert ours in scripts
    for piece in [text, *fragments(text)]:
        assert "alert(1)" not in " ".join(
            " ".join(attributes.values()) for tag, attributes in read(piece).tags if tag == "script"
        )
        assert [tag for tag, attributes in read(piece).tags if any(name.startswith("on") for name in attributes)] == []


def test_a_line_of_five_megabytes_is_cut_and_said() -> None:
    text = "x" * 5_000_000
    made = str(instance.render_reply(TextAllowance(4000, 12000).cut(text)))
    assert len(made) < 5000
    assert "[… 4,996,000 characters left out …]" in made


def test_a_page_of_long_texts_stays_bounded(home: Path) -> None:
    run, content = synthetic_run.write(home, "long", 30, more="\n\n" + "abc " * 300_000)
    assert len(page.render(run, content)) < 3_000_000


@pytest.mark.parametrize(("instances", "characters"), [(1, 40_000), (225, 35_555), (2000, 4000), (100_000, 2000)])
def test_the_more_instances_the_less_of_each(instances: int, characters: int) -> None:
    assert instance.room(instances) == characters


def test_a_chat_is_shown_from_the_journal_as_from_the_markdown_that_was_made_of_it(home: Path) -> None:
    run, _ = synthetic_run.write(home, "both", 3)
    for prediction in run.predictions():
        from_journal = instance.read_attempts(run, prediction.instance_id)
        kinds = [section.kind for _, sections in from_journal for section in sections]
        assert {"system", "user", "assistant", "check"} <= set(kinds)
        (run.folder / "journal" / f"{prediction.instance_id}.jsonl").unlink()
        assert instance.read_attempts(run, prediction.instance_id) == from_journal


def test_a_journal_of_another_version_does_not_keep_the_page_from_the_markdown(home: Path) -> None:
    run, _ = synthetic_run.write(home, "other", 1)
    instance_id = next(run.predictions()).instance_id
    shown = instance.read_attempts(run, instance_id)
    path = run.folder / "journal" / f"{instance_id}.jsonl"
    path.write_bytes(sealed(b'{"event": "reply", "attempt": 1, "call": 1, "text": 1}\n') + path.read_bytes())
    assert instance.read_attempts(run, instance_id) == shown


def test_a_key_that_became_known_later_is_masked_in_the_packed_pieces(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, content = synthetic_run.write(home, "keys", 2)
    known, key = SecretMasker(), "sk-0123456789abcdef0123"
    instance_id = content.instances[0].instance_id
    (run.folder / "journal" / f"{instance_id}.jsonl").unlink()
    run.write_chat(instance_id, f"# one\n\n## Attempt 1: m\n\n### user\n\n```text\nthe key is {key}\n```\n")
    page.write(run, content)
    assert any(key in piece for piece in fragments(run.beside("report.html")))
    known.add(key)
    monkeypatch.setattr("retrial.reports.page.instance.MASKER", known)
    page.write(run, content)
    assert not any(key in piece for piece in fragments(run.beside("report.html")))


def test_charts_say_nothing_wrong(many: tuple[Run, dict[str, Any], str]) -> None:
    _, content, text = many
    charts = re.findall(r'(?s)<svg aria-hidden="true".*?</svg>', text)
    assert len(charts) >= 3
    # pygal's titles would give a bar's place for its value.
    assert all("<title>" not in chart and "<script" not in chart for chart in charts)
    for name, row in content["by_language"].items():
        assert f"{name} {row['percent']:.1f} %" in text


def test_a_first_turn_that_nobody_knows_is_not_drawn_as_a_later_one() -> None:
    known = str(page_charts.divided("a", ["x", "y"], [50.0, 60.0], [20.0, 70.0]))
    assert "nobody knows" not in known
    assert "later turn or try" in known
    assert "nobody knows" in str(page_charts.divided("a", ["x", "y"], [50.0, 60.0], [20.0, None]))
