"""Files for other programs, read back with the readers that others have."""

from __future__ import annotations

import ast
import csv
import datetime
import importlib.util
import io
import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from retrial.errors import UsageError
from retrial.options import ReportOptions
from retrial.reports import write
from retrial.reports.exports import aider, code, hugging_face, junit, line, markdown, preds
from retrial.reports.exports import csv as csv_export
from retrial.reports.exports.junit import for_xml
from retrial.reports.records import Results
from retrial.store.manifest import AgentFacts
from retrial.store.runs import Run
from retrial.system.secrets import SecretMasker
from retrial.types import Outcome
from tests.support.exported import HOSTILE, MANIFEST, PROVENANCE, a_run, content, one_of_each, records, verdict
from tests.support.rows import attempt, row

LONG = 5_000_000
GITHUB = 1 << 20
ALWAYS = {
    "dirname": str, "test_cases": int, "model": str, "edit_format": str, "commit_hash": str, "pass_rate_1": float,
    "pass_rate_2": float, "pass_num_1": int, "pass_num_2": int, "percent_cases_well_formed": float,
    "error_outputs": int, "num_malformed_responses": int, "num_with_malformed_responses": int, "user_asks": int,
    "lazy_comments": int, "syntax_errors": int, "indentation_errors": int, "exhausted_context_windows": int,
    "test_timeouts": int, "total_tests": int, "command": str, "date": datetime.date, "versions": str,
    "seconds_per_case": float,
}  # fmt: skip
"""What every record of aider's polyglot leaderboard has."""
OPTIONAL = {
    "total_cost": float, "prompt_tokens": int, "completion_tokens": int, "reasoning_effort": str,
    "thinking_tokens": int, "editor_model": str, "editor_edit_format": str,
}  # fmt: skip


def anything() -> st.SearchStrategy[str]:
    """Also what no encoding can write, and more often than by chance what means something."""
    odd = st.sampled_from(
        ["`", "|", "\\", "\n", "\x1b[1m", "\x00", "\ud800", "<b>", "](", "]]>", "@a", "[[ATTACHMENT|"]
    )
    letters = st.characters(codec=None, exclude_categories=())
    return st.lists(st.one_of(odd, letters), max_size=30).map("".join)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return a_run(tmp_path, one_of_each())


def document(run: Run, found: Results) -> JUnitXml:
    return JUnitXml.fromfile(io.BytesIO(junit.render(run, found)))


def cases(read: JUnitXml) -> dict[str, Any]:
    return {case.name: case for suite in read for case in suite}


def test_junit_has_a_case_for_each_task_and_each_kind_of_result(run: Run) -> None:
    found = content(one_of_each(), not_predicted={"never": "the budget ended"}, skipped={"old": "no cargo"})
    read = document(run, found)
    assert (read.tests, read.failures, read.errors, read.skipped) == (8, 3, 2, 2)
    by_name = cases(read)
    assert [name for name, case in by_name.items() if case.is_passed] == ["good"]
    assert [name for name, case in by_name.items() if case.is_failure] == ["empty", "tricky", "wrong"]
    assert {name for name, case in by_name.items() if case.is_error} == {"lost", "never"}
    assert {name for name, case in by_name.items() if case.is_skipped} == {"void", "old"}
    assert (by_name["wrong"].result[0].message, by_name["wrong"].result[0].type) == (
        "tests failed: why",
        "tests_failed",
    )
    assert by_name["wrong"].time == 1.25
    assert by_name["wrong"].classname == "bench.python"


def test_junit_says_what_was_run_and_what_came_of_it(run: Run) -> None:
    suite = next(iter(document(run, content(one_of_each()))))
    said = {each.name: each.value for each in suite.properties()}  # type: ignore[no-untyped-call]
    assert (said["run"], said["model"], said["percent"], said["resolved"]) == ("trial", "me", "40.0", "2 of 5")


def test_junit_can_be_read_whatever_a_test_prints(run: Run) -> None:
    text = junit.render(run, content(one_of_each(HOSTILE)))
    ET.fromstring(text)
    found = cases(JUnitXml.fromstring(text))["wrong"]
    assert "red" in found.system_out
    assert "\x1b" not in found.system_out
    assert "<script>" in found.system_err


def test_junit_is_bounded(run: Run) -> None:
    assert len(junit.render(run, content(one_of_each("<" * LONG)))) < GITHUB


def test_no_output_of_a_test_makes_a_ci_publish_a_file(run: Run) -> None:
    text = junit.render(run, content(one_of_each("[[ATTACHMENT|/etc/passwd]] [\x1b[0m[attachment|/etc/passwd]]")))
    assert b"[[attachment|" not in text.lower()
    assert text.count(b"/etc/passwd") > 2


@given(anything())
def test_any_text_can_stand_in_xml(text: str) -> None:
    shown = for_xml(text, 20)
    element = ET.Element("a", {"said": line(text)})
    element.text = shown
    assert ET.fromstring(ET.tostring(element, encoding="utf-8")).tag == "a"
    assert "[[ATTACHMENT|" not in shown


def lines(run: Run, found: Results) -> dict[str, dict[str, str]]:
    text = csv_export.render(run, found).decode("utf-8")
    return {each["instance_id"]: each for each in csv.DictReader(io.StringIO(text, newline=""))}


def test_csv_has_a_line_for_each_task_also_for_those_never_scored(run: Run) -> None:
    found = content(
        one_of_each(),
        records=records("good"),
        not_predicted={"never": "the budget ended"},
        skipped={"old": "no cargo"},
    )
    read = lines(run, found)
    assert sorted(read) == ["empty", "good", "lost", "never", "old", "tricky", "void", "wrong"]
    good = read["good"]
    assert (good["resolved"], good["model"], good["edit_format"], good["cost"]) == ("true", "m", "whole", "0.5")
    assert (good["tests_passed"], good["seconds"], good["proof"]) == ("2", "1.25", "canary")
    assert (read["never"]["outcome"], read["never"]["reason"]) == ("not_measured", "the budget ended")
    assert (read["old"]["outcome"], read["old"]["resolved"]) == ("skipped", "false")
    assert (read["tricky"]["tampered"], read["tricky"]["review"]) == ("canary", "true")


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t=", "\r=", "＝", "\x1b[0m="])
def test_csv_cells_are_no_formulas(run: Run, first: str) -> None:
    reason = f"{first}HYPERLINK(1)"
    cell = lines(run, content(one_of_each(reason)))["wrong"]["reason"]
    assert cell.startswith("'")
    assert cell.endswith("HYPERLINK(1)")


def test_csv_numbers_below_zero_stay_numbers(run: Run) -> None:
    assert lines(run, content(one_of_each()))["wrong"]["exit_code"] == "-9"


def test_csv_is_read_back_whole_whatever_a_test_prints(run: Run) -> None:
    text = csv_export.render(run, content(one_of_each(f'{HOSTILE} "quoted", ')))
    assert len(text.splitlines()) == 7
    assert text.count(b"\r\n") == 7
    assert lines(run, content(one_of_each(HOSTILE)))["wrong"]["proof"] == ""
    assert len(csv_export.render(run, content(one_of_each("x" * LONG)))) < GITHUB


def html(text: str) -> str:
    rendered: str = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return rendered


def summary(run: Run, *scored: Any, **fields: Any) -> str:
    return markdown.render(run, content(scored or one_of_each(), **fields)).decode()


def test_the_summary_begins_with_the_rate_and_its_interval(run: Run) -> None:
    text = summary(run)
    assert text.startswith("## 40.0 % resolved\n")
    assert "40.0 % (95 % interval 11.8 to 76.9), 2 of 5 measured." in text
    assert "what is missing counted as unresolved: 20.0 %" in text


def test_the_summary_says_what_was_not_measured_and_why(run: Run) -> None:
    text = summary(run, not_predicted={"never": "the budget ended"}, skipped={"old": "no cargo"})
    assert "| 1 | `the budget ended` | `never` |" in text
    assert "| 1 | `no cargo` | `old` |" in text
    assert "### Void here" in text
    assert "| `tricky` | `tampered (canary)` |" in text
    assert "<summary>3 unresolved tasks</summary>" in text


def test_the_summary_has_a_table_of_rungs_or_of_foreign_models(run: Run) -> None:
    assert "| `m:whole` |" in summary(run, records=records("good"))
    assert "| `me` | 40.0 %" in summary(run)


def test_no_reason_breaks_the_summary_or_makes_links(run: Run) -> None:
    scored = one_of_each(HOSTILE)
    plain, hostile = html(summary(run)), html(summary(run, *scored, skipped={"old": HOSTILE}))
    assert "<a" not in hostile
    assert "<img" not in hostile
    assert "<script" not in hostile
    assert hostile.count("<h1") == 0
    assert hostile.count("</details>") == plain.count("</details>") == 1
    table = hostile.partition("<details>")[2]
    assert table.count("<td>") == 4 * 3


@given(anything())
def test_any_text_is_one_code_span_in_one_cell(text: str) -> None:
    tokens = (
        MarkdownIt("commonmark", {"html": True}).enable("table").parse(f"| a | b |\n|---|---|\n| {code(text)} | c |")
    )
    cells = [token for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    kinds = [child.type for child in cells[2].children or ()]
    assert kinds in (["code_inline"], ["text"])
    assert kinds == ["code_inline"] or cells[2].content == "–"


def test_the_summary_stays_below_what_github_takes(run: Run) -> None:
    wide = "\U0001f600" * 1000
    scored = [
        row(f"{'x' * 150}-{number:04}", verdict(outcome, f"{number} {wide}"), void=void)
        for number in range(0, 4000, 4)
        for number, outcome, void in (
            (number, Outcome.TESTS_FAILED, ""),
            (number + 1, Outcome.NOT_MEASURED, ""),
            (number + 2, Outcome.TAMPERED, ""),
            (number + 3, Outcome.RESOLVED, f"{number} {wide}"),
        )
    ]
    text = summary(run, *scored, benchmark_size=5000)
    assert len(text.encode()) < GITHUB
    assert "… and 1700 more, in results.json." in text


def the_record(run: Run, found: Results) -> tuple[dict[str, Any], str]:
    text = aider.render(run, found)
    assert text is not None
    (read,) = yaml.safe_load(text)
    return read, text.decode()


def test_the_aider_record_has_the_keys_and_types_of_the_leaderboard(run: Run) -> None:
    turns = [attempt(tests_outcomes=[False, True], cost=0.25)]
    read, text = the_record(run, content(one_of_each(), records=records("good", "wrong", attempts=turns)))
    assert {name: type(read.get(name)) for name in ALWAYS} == ALWAYS
    assert {name: type(value) for name, value in read.items() if name not in ALWAYS} == {
        name: kind for name, kind in OPTIONAL.items() if name in read
    }
    assert (read["pass_rate_1"], read["pass_rate_2"], read["pass_num_2"]) == (0.0, 50.0, 1)
    assert (read["date"], read["total_cost"]) == (datetime.date(2026, 11, 16), 0.5)
    assert "second turn" not in text


def test_the_aider_record_says_when_there_was_no_second_turn(run: Run) -> None:
    failed = [attempt(tests_outcomes=[False])]
    read, text = the_record(run, content(one_of_each(), records=records("good", "wrong", attempts=failed)))
    assert (read["pass_rate_2"], read["pass_num_2"]) == (read["pass_rate_1"], read["pass_num_1"])
    assert "# No task was given a second turn" in text
    read, text = the_record(run, content(one_of_each(), records=records("good")))
    assert (read["pass_rate_2"], read["pass_num_2"]) == (100.0, 1)
    assert "# No task needed a second turn" in text


def test_the_aider_record_leaves_out_what_is_unknown(run: Run) -> None:
    read, text = the_record(run, content(one_of_each(), records=records("good", attempts=[attempt(cost=None)])))
    assert set(read).isdisjoint({"total_cost", "thinking_tokens", "editor_model", "reasoning_effort"})
    assert "# total_cost is left out" in text
    assert aider.render(run, content(one_of_each())) is None


def test_the_aider_record_is_yaml_whatever_the_model_is_called(run: Run) -> None:
    odd = [attempt(model=f"on: {HOSTILE}", edit_format="1.0")]
    read, _ = the_record(
        run, content(one_of_each(), records=records("good", attempts=odd), manifest=replace(MANIFEST, command=HOSTILE))
    )
    assert read["model"].startswith("on: red")
    assert read["edit_format"] == "1.0"


def entry(run: Run, found: Results) -> Any:
    from huggingface_hub import parse_eval_result_entries

    text = hugging_face.render(run, found)
    assert text is not None
    (read,) = parse_eval_result_entries(yaml.safe_load(text))
    return read


@pytest.mark.parametrize(
    ("source", "dataset", "task"),
    [
        ("swe-bench-verified", "SWE-bench/SWE-bench_Verified", "swe_bench_%_resolved"),
        ("SWE-bench/SWE-bench_Verified:test", "SWE-bench/SWE-bench_Verified", "swe_bench_%_resolved"),
        ("swe-bench-lite", "SWE-bench/SWE-bench_Lite", "swe_bench_lite_%_resolved"),
    ],
)
def test_the_hub_reads_the_entry_of_a_benchmark_with_a_leaderboard(
    run: Run, source: str, dataset: str, task: str
) -> None:
    found = content(one_of_each(), provenance={**PROVENANCE, "benchmark": {"source": source}}, records=records("good"))
    read = entry(run, found)
    assert (read.dataset_id, read.task_id, read.value) == (dataset, task, 20.0)
    assert read.notes == ("Retrial 0.1.0; me; attempts 1; 2 of 10 resolved, 5 measured, the rest counted as unresolved")


@pytest.mark.parametrize("source", ["demo", "swe-bench", "swe-bench-lite:dev", "/a/copy:swe-bench-verified"])
def test_the_hub_gets_nothing_of_what_has_no_leaderboard(run: Run, source: str) -> None:
    found = content(one_of_each(), provenance={**PROVENANCE, "benchmark": {"source": source}})
    assert hugging_face.render(run, found) is None


def test_the_hub_gets_nothing_that_no_model_made(run: Run) -> None:
    assert hugging_face.render(run, content(one_of_each(), provenance={**PROVENANCE, "kind": "gold"})) is None


def test_the_hub_entry_says_what_stands_against_it(run: Run) -> None:
    forbidden = replace(MANIFEST, identity={"visible_tests": "original"}, agent=AgentFacts(isolated=False))
    text = hugging_face.render(run, content(one_of_each(HOSTILE), manifest=forbidden))
    assert text is not None
    assert b"# Against it: Visible tests were chosen by the hidden ones" in text
    assert b"agent not isolated" in text


def reader_of_swebench() -> Callable[..., list[dict[str, Any]]]:
    """Its own function, out of its module: that imports packages which are not installed, and do not matter here."""
    package = importlib.util.find_spec("swebench")
    assert package is not None
    assert package.origin is not None
    source = (Path(package.origin).parent / "harness" / "utils.py").read_text(encoding="utf-8")
    wanted = [node for node in ast.parse(source).body if getattr(node, "name", "") == "get_predictions_from_file"]
    names: dict[str, Any] = {"json": json}
    exec(compile(ast.Module(body=list(wanted), type_ignores=[]), "utils.py", "exec"), names)
    found: Callable[..., list[dict[str, Any]]] = names["get_predictions_from_file"]
    return found


def test_swebench_reads_both_forms_of_the_predictions_alike(tmp_path: Path) -> None:
    run = a_run(
        tmp_path,
        [row("good", Outcome.RESOLVED, patch="odd \udcff and \U0001f600\n"), row("no", Outcome.PATCH_EMPTY, "")],
    )
    path = run.write_beside("preds.json", preds.render(run, content(())))
    read = reader_of_swebench()
    assert path is not None
    assert read(str(path), "", "") == read(str(run.bundle_path), "", "")
    assert [each["model_patch"] for each in read(str(path), "", "")] == ["odd \udcff and \U0001f600\n", ""]
    by_id = json.loads(path.read_text(encoding="ascii"))
    assert list(by_id) == ["good", "no"]
    assert set(by_id["no"]) == {"instance_id", "model_name_or_path", "model_patch"}


def test_everything_asked_for_is_written_and_named(home: Path, tmp_path: Path) -> None:
    run, found = a_run(home, one_of_each()), content(one_of_each(), records=records("good"))
    asked: dict[str, Any] = {name: str(tmp_path / f"{name}.out") for name in ("junit", "markdown", "csv")}
    told = write.write(write.outputs(ReportOptions(**asked)), run, found)
    assert [Path(path).stat().st_size > 0 for path in asked.values()] == [True] * 3
    assert told[0] == f"Page: {run.folder / 'report.html'}"
    assert told[1:] == [f"JUnit: {asked['junit']}", f"Markdown: {asked['markdown']}", f"CSV: {asked['csv']}"]
    assert {"preds.json", "aider.yaml", "eval_results.yaml"} <= {path.name for path in run.folder.iterdir()}


def test_what_does_not_hold_any_more_is_gone(home: Path) -> None:
    run = a_run(home, one_of_each())
    write.write(write.outputs(ReportOptions()), run, content(one_of_each(), records=records("good")))
    write.write(
        write.outputs(ReportOptions()), run, content(one_of_each(), provenance={"benchmark": {"source": "demo"}})
    )
    assert (run.folder / "preds.json").exists()
    assert not (run.folder / "aider.yaml").exists()
    assert not (run.folder / "eval_results.yaml").exists()


def test_a_link_stays_a_link(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "target.csv")
    write.write(write.outputs(ReportOptions(csv=str(link))), a_run(home, one_of_each()), content(one_of_each()))
    assert link.is_symlink()
    assert (tmp_path / "target.csv").is_file()


def asking(name: str, path: Path, **more: Any) -> ReportOptions:
    return ReportOptions(**{name: str(path), **more})


@pytest.mark.parametrize("name", ["junit", "markdown", "csv", "submission"])
def test_what_cannot_be_written_is_refused_before_anything_is_scored(home: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        write.outputs(asking(name, tmp_path / "missing" / "x"))
    run = a_run(home)
    with pytest.raises(UsageError, match="lies among the files of runs"):
        write.outputs(asking(name, run.folder / "results.json"))
    with pytest.raises(UsageError, match="--calibrate gives none"):
        write.outputs(asking(name, tmp_path / "x", calibrate=True))
    write.outputs(asking(name, tmp_path / "x"))


def test_two_files_of_one_name_and_things_that_are_no_files_are_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--junit and --csv are the same file"):
        write.outputs(ReportOptions(junit=str(tmp_path / "x"), csv=str(tmp_path / ".." / tmp_path.name / "x")))
    with pytest.raises(UsageError, match="no file that can be replaced"):
        write.outputs(ReportOptions(csv=str(tmp_path)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no file that can be replaced"):
        write.outputs(ReportOptions(csv=str(pipe)))
    assert pipe.is_fifo()


def test_keys_are_in_no_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, key = SecretMasker(), 'sk-"<&>|`0123456789abcdef'
    known.add(key)
    for module in ("retrial.store.json_io", "retrial.system.files"):
        monkeypatch.setattr(f"{module}.MASKER", known)
    asked: dict[str, Any] = {name: str(tmp_path / f"{name}.out") for name in ("junit", "markdown", "csv")}
    write.write(
        write.outputs(ReportOptions(**asked)), a_run(home, one_of_each()), content(one_of_each(f"refused: {key}"))
    )
    for path in asked.values():
        text = Path(path).read_text(encoding="utf-8")
        assert "0123456789abcdef" not in text
        assert "refused: ***" in text
