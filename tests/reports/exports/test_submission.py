"""The folder that SWE-bench/experiments takes: what is in it, what is said of it, and what it never overwrites."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from retrial.errors import UsageError
from retrial.options import ReportOptions
from retrial.reports import write
from retrial.reports.exports import submission
from retrial.score import official_report
from retrial.score.scorer import Scored
from retrial.store.json_io import read_json, to_json
from retrial.store.manifest import AgentFacts
from retrial.store.runs import Run
from retrial.system.secrets import SecretMasker
from retrial.types import Outcome
from tests.support.exported import HOSTILE, MANIFEST, PROVENANCE, a_run, content, one_of_each, records
from tests.support.rows import CHECK, FAILED, PASSED, TREE, attempt, graded, output, row

OFFICIAL = {"patch.diff", "report.json", "test_output.txt", "eval.sh"}
PLACES = {"all_preds.jsonl", "metadata.yaml", "README.md", "logs", "trajs", "results", ".retrial.json"}


def of_swebench() -> tuple[Scored, ...]:
    return (
        graded("good", output(*PASSED), exit_code=0),
        row("nothing", Outcome.PATCH_EMPTY, "", tree=TREE, check=CHECK),
        graded("wrong", output(*FAILED)),
    )


def an_official_run(home: Path, scored: Sequence[Scored], **fields: Any) -> Run:
    """With the files that scoring leaves where the benchmark has its own grading."""
    run = a_run(home, scored, **fields)
    for each in scored:
        run.write_official(each.task.instance_id, official_report.files(each))
    run.write_official_report({"schema_version": 2})
    return run


def made(tmp_path: Path, scored: Sequence[Scored], *, official: bool = True, **fields: Any) -> tuple[Path, list[str]]:
    run = (an_official_run if official else a_run)(tmp_path, scored)
    known = {"benchmark_size": len(scored), "records": records(*(each.task.instance_id for each in scored)), **fields}
    folder = tmp_path / "handed-in"
    return folder, submission.write(folder, run, content(scored, **known))


def test_a_complete_run_of_swe_bench_has_everything_and_nothing_against_it(tmp_path: Path) -> None:
    folder, notes = made(tmp_path, of_swebench())
    assert {path.name for path in folder.iterdir()} == PLACES
    assert {path.name for path in (folder / "logs" / "good").iterdir()} == OFFICIAL
    assert json.loads((folder / "logs" / "good" / "report.json").read_bytes())["good"]["resolved"] is True
    assert not (folder / "logs" / "nothing").exists()
    assert (folder / "trajs" / "wrong.md").read_text(encoding="utf-8") == "# chat of wrong\n"
    assert notes == []
    assert "against" not in (folder / "README.md").read_text(encoding="utf-8")


def test_results_are_counted_as_the_leaderboard_counts_them(tmp_path: Path) -> None:
    late = graded("late", output(*PASSED).partition("PASSED")[0], exit_code=None, timed_out=True)
    folder, _ = made(tmp_path, (*of_swebench(), late))
    assert json.loads((folder / "results" / "results.json").read_bytes()) == {
        "no_generation": ["nothing"],
        "no_logs": ["late"],
        "resolved": ["good"],
    }


def test_predictions_are_those_of_the_run(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, of_swebench())
    assert (folder / "all_preds.jsonl").read_bytes() == Run(tmp_path, "trial").bundle_path.read_bytes()


def test_metadata_has_the_current_form_and_marks_what_only_the_submitter_knows(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, of_swebench())
    read = yaml.safe_load((folder / "metadata.yaml").read_text(encoding="utf-8"))
    assert {name: set(found) for name, found in read.items()} == {
        "assets": {"logs", "trajs"},
        "info": {"authors", "logo", "name", "report", "site"},
        "tags": {"checked", "model", "org", "os_model", "os_system", "system"},
    }
    assert (read["tags"]["checked"], read["tags"]["model"], read["tags"]["system"]) == (False, ["m"], {"attempts": "1"})
    assert read["assets"]["logs"].startswith("TODO")
    assert read["tags"]["os_model"].startswith("TODO")


def test_retries_chosen_by_visible_tests_are_best_of_k(tmp_path: Path) -> None:
    twice = records("good", "nothing", "wrong", attempts=[attempt(1), attempt(2)])
    folder, notes = made(tmp_path, of_swebench(), records=twice)
    assert yaml.safe_load((folder / "metadata.yaml").read_bytes())["tags"]["system"] == {"attempts": "2+"}
    assert "- [x] best@k" in (folder / "README.md").read_text(encoding="utf-8")
    assert notes == []


def shown_tests(how: str) -> dict[str, Any]:
    return {"manifest": replace(MANIFEST, identity={"visible_tests": how})}


@pytest.mark.parametrize(
    ("fields", "said", "unticked"),
    [
        (shown_tests("original"), "chosen by the hidden ones", "- [ ] Not allowed: visible tests"),
        (shown_tests("nearby+original"), "chosen by the hidden ones", "- [ ] Not allowed: visible tests"),
        (
            {"manifest": replace(MANIFEST, agent=AgentFacts(isolated=False))},
            "was not isolated",
            "- [ ] The agent was not isolated",
        ),
        ({"benchmark_size": 300}, "297 of 300 tasks have no prediction", ""),
        ({"provenance": {**PROVENANCE, "file": "x.jsonl"}}, "made elsewhere", "- [ ] TODO: in how many attempts"),
        (
            {"visible_is_hidden": True, "records": records("good", attempts=[attempt(1), attempt(2)])},
            "pass@k, which is not allowed",
            "- [ ] Not allowed: tasks were retried",
        ),
    ],
)
def test_what_stands_against_submitting_is_said_on_screen_and_in_the_readme(
    tmp_path: Path, fields: dict[str, Any], said: str, unticked: str
) -> None:
    folder, notes = made(tmp_path, of_swebench(), **fields)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert any(note.startswith("against submitting: ") and said in note for note in notes)
    assert said in readme.partition("What stands against")[2]
    assert unticked in readme


def test_no_text_from_outside_makes_links_in_the_readme(tmp_path: Path) -> None:
    run = an_official_run(tmp_path, of_swebench(), command=HOSTILE, identity={"models": [HOSTILE], "agent": HOSTILE})
    submission.write(tmp_path / "sub", run, content(of_swebench(), benchmark=HOSTILE))
    text = (tmp_path / "sub" / "README.md").read_text(encoding="utf-8")
    shown = MarkdownIt("commonmark", {"html": True}).render(text)
    assert shown.count("alert(1)") == 4
    assert shown.count("<h1>") == 1
    assert [tag for tag in ("<a", "<img", "<script", "</details>") if tag in shown] == []


def test_tampering_gaps_and_doubts_stand_against_it(tmp_path: Path) -> None:
    _, notes = made(tmp_path, one_of_each(HOSTILE), official=False)
    text = "\n".join(notes)
    for said in ("none of those", "1 task could not be measured", "tampered with their tests: 1", "`tricky`", "`void`"):
        assert said in text


def test_other_benchmarks_have_the_logs_that_there_are(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, one_of_each(), official=False)
    assert (folder / "logs" / "good" / "eval.log").read_text(encoding="utf-8") == "log of good\n"
    assert json.loads((folder / "results" / "results.json").read_bytes())["no_logs"] == []


def test_predictions_made_elsewhere_have_no_trajectories_and_unknown_attempts(tmp_path: Path) -> None:
    run = an_official_run(tmp_path, of_swebench(), chats=False)
    found = content(of_swebench(), provenance={**PROVENANCE, "file": "x.jsonl", "sha256": "s"})
    notes = submission.write(tmp_path / "sub", run, found)
    assert any("trajectory is required of each task, and 3 have none" in note for note in notes)
    read = yaml.safe_load((tmp_path / "sub" / "metadata.yaml").read_bytes())
    assert read["tags"]["system"]["attempts"].startswith("TODO")


def test_what_the_official_grading_refutes_is_not_claimed(tmp_path: Path) -> None:
    scored = of_swebench()
    run, found = an_official_run(tmp_path, scored), content(scored, records=records("good"))
    found.instances[0] = replace(found.instances[0], resolved_official=False)
    submission.write(tmp_path / "sub", run, found)
    assert json.loads((tmp_path / "sub" / "results" / "results.json").read_bytes())["resolved"] == []


def test_it_is_made_anew_for_the_same_run(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, of_swebench())
    folder, notes = made(tmp_path, of_swebench()[:1])
    assert {path.name for path in (folder / "logs").iterdir()} == {"good"}
    assert {path.name for path in (folder / "trajs").iterdir()} == {"good.md"}
    assert notes == []


def test_what_somebody_has_filled_in_is_kept(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, of_swebench())
    (folder / "metadata.yaml").write_text("mine", encoding="utf-8")
    (folder / "paper.pdf").write_text("mine", encoding="utf-8")
    folder, notes = made(tmp_path, of_swebench())
    assert (folder / "metadata.yaml.before").read_text(encoding="utf-8") == "mine"
    assert (folder / "paper.pdf").exists()
    assert not (folder / "README.md.before").exists()
    assert notes == ["note: metadata.yaml was changed by hand, and is kept as metadata.yaml.before"]


def test_a_folder_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine", encoding="utf-8")
    run, found = an_official_run(tmp_path, of_swebench()), content(of_swebench())
    with pytest.raises(UsageError, match="is not empty, and no folder that we made"):
        submission.write(tmp_path / "full", run, found)
    with pytest.raises(UsageError, match="is a file"):
        submission.write(tmp_path / "full" / "letter", run, found)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter"]


def test_a_folder_of_another_run_is_refused_and_left_alone(home: Path, tmp_path: Path) -> None:
    folder, _ = made(tmp_path, of_swebench())
    before = (folder / "README.md").read_bytes()
    options, other = ReportOptions(submission=str(folder)), Run(home, "other")
    wanted = write.outputs(options)
    with pytest.raises(UsageError, match="was made from run 'trial', not 'other'"):
        wanted.refuse_other_run(other)
    with pytest.raises(UsageError, match="was made from run 'trial', not 'other'"):
        write.write(wanted, other, content([]))
    assert (folder / "README.md").read_bytes() == before
    assert not other.folder.exists()


def test_an_empty_folder_will_do_and_links_are_not_followed_when_it_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "handed-in").mkdir()
    folder, _ = made(tmp_path, of_swebench())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("mine", encoding="utf-8")
    (folder / "trajs").rename(tmp_path / "gone")
    (folder / "trajs").symlink_to(tmp_path / "elsewhere")
    made(tmp_path, of_swebench())
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]
    assert (folder / "trajs" / "good.md").is_file()


@pytest.mark.parametrize("other", ["gold", "null"])
def test_references_are_nothing_to_submit(home: Path, tmp_path: Path, other: str) -> None:
    options = ReportOptions(submission=str(tmp_path / "x"), **{other: True})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="for predictions of a model"):
        write.outputs(options)


def test_it_is_named_on_screen_with_what_stands_against_it(home: Path, tmp_path: Path) -> None:
    run, found = an_official_run(home, of_swebench()), content(of_swebench(), records=records("good"))
    said = write.write(write.outputs(ReportOptions(submission=str(tmp_path / "sub"))), run, found)
    assert said[1] == f"Submission: {tmp_path / 'sub'}"
    assert said[2] == "  against submitting: 7 of 10 tasks have no prediction: leaderboards count them as unresolved."


def test_keys_are_masked_in_all_that_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = an_official_run(tmp_path, of_swebench()), content(of_swebench())
    known, key = SecretMasker(), "sk-0123456789abcdef0123"
    known.add(key)
    run.write_chat("good", f"the key is {key}")
    run.write_official("good", {"test_output.txt": key.encode(), "report.json": to_json({})})
    run.write_config({**read_json(run.config_path), "command": f"python harness.py --key {key}"})
    for module in ("retrial.reports.exports.submission", "retrial.system.files"):
        monkeypatch.setattr(f"{module}.MASKER", known)
    submission.write(tmp_path / "sub", run, found)
    files = [path for path in (tmp_path / "sub").rglob("*") if path.is_file()]
    assert len(files) > 8
    assert [path for path in files if key.encode() in path.read_bytes()] == []
    assert (tmp_path / "sub" / "trajs" / "good.md").read_text(encoding="utf-8") == "the key is ***"


def test_nothing_that_somebody_wrote_is_lost_however_often_it_is_made_anew(home: Path, tmp_path: Path) -> None:
    run, found = an_official_run(home, of_swebench()), content(of_swebench())
    folder = tmp_path / "sub"
    for words in ("one", "two", "three"):
        submission.write(folder, run, found)
        with (folder / "README.md").open("a") as file:
            file.write(f"BY HAND {words}\n")
    submission.write(folder, run, found)
    kept = "".join(path.read_text() for path in folder.glob("README.md.before*"))
    assert all(f"BY HAND {words}" in kept for words in ("one", "two", "three"))
