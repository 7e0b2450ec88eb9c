"""Several runs as one: of each task the first plausible prediction in the order given, else the least bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrial.errors import UsageError
from retrial.score.merge import Merged, merge, read, write
from retrial.store import history
from retrial.store.json_io import read_json
from retrial.store.runs import Run
from tests.support.journals import append
from tests.support.rows import attempt, record, summary

NOTHING: dict[str, Any] = {
    "model_patch": "",
    "edited_files": [],
    "edit_outcome": False,
    "lint_outcome": False,
    "test_outcome": False,
}
PATCH: dict[str, Any] = {"edit_outcome": False, "lint_outcome": False, "test_outcome": False}
EDIT: dict[str, Any] = {"edit_outcome": True, "lint_outcome": False, "test_outcome": False}
LINT: dict[str, Any] = {"edit_outcome": False, "lint_outcome": True, "test_outcome": False}
RED: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": False}
UNKNOWN: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": None}
GREEN: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": True}
WORST_TO_BEST = [NOTHING, PATCH, EDIT, LINT, RED, UNKNOWN, GREEN]


def a_run(home: Path, name: str, *records: dict[str, Any], **config: Any) -> Run:
    run = Run(home, name)
    stored = {
        "program": "harness.py",
        "run": name,
        "command": f"python harness.py --run {name}",
        "identity": {"benchmark": "bench", "benchmark_digest": "d1"},
        "model_name_or_path": "edit--m",
        "selected": sorted(each["instance_id"] for each in records),
        **config,
    }
    run.write_config(stored)
    for each in records:
        run.write_prediction(each["instance_id"], each, f"# the chat of {name}\n")
    return run


def merged(home: Path, *names: str, name: str = "") -> Merged:
    found = merge(home, read(home, names), name)
    write(found)
    return found


def chosen(home: Path, *names: str) -> dict[str, str]:
    return {key: each.dname for key, each in merged(home, *names).past.records.items()}


@pytest.mark.parametrize("worse", range(len(WORST_TO_BEST) - 1))
def test_the_better_prediction_is_taken_wherever_it_stands(tmp_path: Path, worse: int) -> None:
    a_run(tmp_path, "A", record(**WORST_TO_BEST[worse]))
    a_run(tmp_path, "B", record(**WORST_TO_BEST[worse + 1]))
    assert chosen(tmp_path, "A", "B") == {"one": "B"}
    assert chosen(tmp_path, "B", "A") == {"one": "B"}


@pytest.mark.parametrize("kind", WORST_TO_BEST)
def test_of_equals_the_first_is_taken(tmp_path: Path, kind: dict[str, Any]) -> None:
    for name in "AB":
        a_run(tmp_path, name, record(**kind))
    assert chosen(tmp_path, "A", "B") == {"one": "A"}
    assert chosen(tmp_path, "B", "A") == {"one": "B"}


def test_a_patch_of_which_nothing_counts_is_no_patch(tmp_path: Path) -> None:
    a_run(tmp_path, "A", record(**{**GREEN, "edited_files": []}))
    a_run(tmp_path, "B", record(**PATCH))
    assert chosen(tmp_path, "A", "B") == {"one": "B"}


def test_a_record_that_says_nothing_of_its_tests_is_not_unverified() -> None:
    kept = {key: value for key, value in record(**GREEN).items() if key != "test_outcome"}
    assert not summary(kept).settled


def test_shards_are_put_together(tmp_path: Path) -> None:
    a_run(tmp_path, "A", record("one"))
    a_run(tmp_path, "B", record("two"))
    assert chosen(tmp_path, "A", "B") == {"one": "A", "two": "B"}
    assert history.read(Run(tmp_path, "A+B")).selected == {"one", "two"}


def test_the_attempts_of_all_are_kept_and_the_chosen_one_is_known(tmp_path: Path) -> None:
    a_run(tmp_path, "A", record("one", attempt(1, note="a1"), attempt(2, note="a2"), chosen=1, **RED))
    a_run(tmp_path, "B", record("one", attempt(1, note="b1"), attempt(2, note="b2"), chosen=2, seed=7))
    merged(tmp_path, "A", "B")
    found = Run(tmp_path, "A+B").stored_prediction("one")
    assert [(each["try"], each["note"], each["dname"]) for each in found["all_results"]] == [
        (1, "a1", "A"),
        (2, "a2", "A"),
        (3, "b1", "B"),
        (4, "b2", "B"),
    ]
    assert (found["try"], found["tries"], found["dname"], found["seed"]) == (4, 4, "B", 7)
    assert Run(tmp_path, "A+B").chat("one") == "# the chat of B\n"


def test_the_model_name_stays_where_all_agree_and_is_joined_where_not(tmp_path: Path) -> None:
    for name, model in (("A", "edit--m"), ("B", "edit--m"), ("C", "edit--n")):
        a_run(tmp_path, name, record(), model_name_or_path=model)
    assert merged(tmp_path, "A", "B").past.records["one"].model_name_or_path == "edit--m"
    assert merged(tmp_path, "A", "B", "C").past.records["one"].model_name_or_path == "edit--m+edit--n"


def test_what_was_spent_is_spent_in_all_sources(tmp_path: Path) -> None:
    usage = {"calls": 1, "prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25, "seconds": 2.0}
    for name in "AB":
        append(a_run(tmp_path, name, record()).journal("one"), "reply", reply={"text": "", "usage": usage})
    merged(tmp_path, "A", "B")
    spent = Run(tmp_path, "A+B").spent()
    assert (spent.calls, spent.prompt_tokens, spent.cost, spent.seconds) == (2, 20, 0.5, 4.0)


def test_an_unknown_price_makes_the_sum_unknown(tmp_path: Path) -> None:
    usage = {"calls": 1, "prompt_tokens": 10, "completion_tokens": 5, "seconds": 2.0}
    for name, cost in (("A", 0.25), ("B", None)):
        append(
            a_run(tmp_path, name, record()).journal("one"),
            "reply",
            reply={"text": "", "usage": {**usage, "cost": cost}},
        )
    merged(tmp_path, "A", "B")
    assert Run(tmp_path, "A+B").spent().cost is None


def test_what_nobody_finished_is_said_with_its_reason(tmp_path: Path) -> None:
    a_run(tmp_path, "A", record("one"), selected=["one", "two", "three"], skipped={"three": "no toolchain"})
    run = a_run(tmp_path, "B", selected=["two", "three", "four"], skipped={"four": "too old"})
    append(run.journal("two"), "not_measured", reason="the provider was away")
    append(run.journal("three"), "not_measured", reason="the money was spent")
    merged(tmp_path, "A", "B")
    found = history.read(Run(tmp_path, "A+B"))
    assert found.skipped == {"four": "too old"}
    assert found.not_predicted["three"] == "the money was spent"
    assert set(found.not_predicted) == {"two", "three"}


def test_its_run_json_says_what_it_is_made_of(tmp_path: Path) -> None:
    identity = {"benchmark": "bench", "benchmark_digest": "d1"}
    a_run(tmp_path, "A", record(), identity={**identity, "visible_tests": "nearby"})
    a_run(tmp_path, "B", record(), identity={**identity, "visible_tests": "original"})
    merged(tmp_path, "A", "B", name="best")
    stored = json.loads((tmp_path / "predictions/best/run.json").read_text())
    assert (stored["program"], stored["sources"]) == ("report.py", ["A", "B"])
    assert stored["identity"] == {**identity, "visible_tests": "nearby+original"}
    assert stored["command"] == "python harness.py --run A && python harness.py --run B"


def test_it_is_made_anew_when_its_sources_are_given_again(tmp_path: Path) -> None:
    a_run(tmp_path, "A", record("one", **RED), record("two"))
    a_run(tmp_path, "B", record("one", **RED))
    merged(tmp_path, "A", "B")
    (tmp_path / "predictions/A/two.json").unlink()
    a_run(tmp_path, "B", record("one", **GREEN))
    merged(tmp_path, "A", "B")
    assert [(each.instance_id, each.dname) for each in Run(tmp_path, "A+B").predictions()] == [("one", "B")]
    assert not (tmp_path / "predictions/A+B/two.md").exists()


def test_a_path_inside_a_run_names_it(tmp_path: Path) -> None:
    for name in "AB":
        a_run(tmp_path, name, record())
    inside = tmp_path / "predictions/A/one.json"
    assert merged(tmp_path, str(inside), str(tmp_path / "predictions/B")).past.run.name == "A+B"


@pytest.mark.parametrize(
    ("names", "result", "words"),
    [
        (("A", "A"), "", "'A' is named twice"),
        (("A", "elsewhere.jsonl"), "", "elsewhere.jsonl is no run: only runs of harness.py"),
        (("A", "nowhere"), "", "no run and no file 'nowhere'"),
        (("A", "imported"), "", "'imported' was made from a file"),
        (("A", "B+C"), "", "'B\\+C' is itself made of several: name those"),
        (("A", "other"), "", "'other' is about elsewhere, not bench"),
        (("A", "older"), "", "'older' is about another state of bench"),
        (("A", "B"), "B", "'B' is one of those"),
        (("A", "B"), "C", "a run 'C' already that was not made of several"),
        (("A", "B"), "../up", "cannot be a run's name"),
        (("A", "L" * 199), "", "too long for one: name the result with --run"),
    ],
)
def test_what_cannot_be_one_result_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], result: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("A", "B", "C", "L" * 199):
        a_run(tmp_path, name, record())
    a_run(tmp_path, "other", record(), identity={"benchmark": "elsewhere", "benchmark_digest": "d1"})
    a_run(tmp_path, "older", record(), identity={"benchmark": "bench", "benchmark_digest": "d0"})
    a_run(tmp_path, "imported", program="report.py", source={"file": "preds.jsonl"})
    merged(tmp_path, "B", "C")
    Path("elsewhere.jsonl").write_text("")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=words):
        merged(tmp_path, *names, name=result)
    assert sorted(tmp_path.rglob("*")) == before


# Shards


def a_shard(home: Path, number: int, *records: dict[str, Any], of: int = 3, whole: str = "R", **config: Any) -> Run:
    shard = {"number": number, "of": of, "tasks": 6, "digest": "d", "selection": {}, **config.pop("shard", {})}
    return a_run(home, f"{whole}--{number}-of-{of}", *records, shard=shard, **config)


def shards_of(home: Path, name: str = "R") -> dict[str, Any]:
    found: dict[str, Any] = read_json(Run(home, name).config_path)["shards"]
    return found


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]


def test_all_shards_make_the_whole_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (one, two) in enumerate((("a", "d"), ("b", "e"), ("c", "f")), start=1):
        a_shard(tmp_path, number, record(one), record(two))
    merged(tmp_path, "R--3-of-3", "R--1-of-3", "R--2-of-3")
    assert [each.instance_id for each in Run(tmp_path, "R").predictions()] == list("abcdef")
    assert shards_of(tmp_path) == {"of": 3, "given": [1, 2, 3], "missing": [], "overlapping": []}
    assert said(capsys) == []


def test_where_each_prediction_comes_from_and_what_its_run_was_is_in_the_whole(tmp_path: Path) -> None:
    for number, one in enumerate("ab", start=1):
        run = a_shard(tmp_path, number, record(one), of=2, host=f"node{number}", started="then", versions={"x": "1"})
        append(run.journal(one), "reply", reply={"text": "", "usage": {"calls": 1, "cost": number / 4, "seconds": 1.0}})
    merged(tmp_path, "R--1-of-2", "R--2-of-2")
    assert [each.dname for each in Run(tmp_path, "R").predictions()] == ["R--1-of-2", "R--2-of-2"]
    known = read_json(Run(tmp_path, "R").config_path)["source_runs"]["R--2-of-2"]
    assert (known["host"], known["started"], known["versions"], known["predictions"]) == (
        "node2",
        "then",
        {"x": "1"},
        1,
    )
    assert (known["spent"]["cost"], known["shard"]["number"]) == (0.5, 2)
    assert "--run R--2-of-2" in known["command"]


def test_a_missing_shard_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_shard(tmp_path, 1, record("a"), record("d"))
    a_shard(tmp_path, 3, record("c"), record("f"))
    merged(tmp_path, "R--1-of-3", "R--3-of-3")
    assert shards_of(tmp_path)["missing"] == [2]
    assert said(capsys) == [
        "note: missing of the 3 shards of 'R': 2, with 2 tasks, not measured but where another run has them"
    ]


def test_a_shard_that_has_no_task_is_not_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_shard(tmp_path, 1, record("a"), shard={"tasks": 1})
    merged(tmp_path, "R--1-of-3")
    assert shards_of(tmp_path)["missing"] == []
    assert said(capsys) == []


def test_tasks_of_several_shards_are_said_and_the_best_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_shard(tmp_path, 1, record("a", **RED), record("b"), of=2)
    a_shard(tmp_path, 2, record("a"), of=2)
    merged(tmp_path, "R--1-of-2", "R--2-of-2")
    assert shards_of(tmp_path)["overlapping"] == ["a"]
    assert said(capsys) == ["note: in several shards of 'R': a; of each the best is taken"]
    assert [each.dname for each in Run(tmp_path, "R").predictions()] == ["R--2-of-2", "R--1-of-2"]


def test_a_copy_from_elsewhere_of_a_shard_that_is_here_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_shard(tmp_path, 1, record("a", **RED), of=2)
    a_shard(tmp_path, 2, record("b"), of=2)
    copy = a_shard(tmp_path / "far", 1, record("a"), of=2)
    before = sorted((tmp_path / "far").rglob("*"))
    merged(tmp_path, "R--1-of-2", "R--2-of-2", str(copy.folder))
    assert said(capsys)[0] == "note: given more than once of the 2 shards of 'R': 1"
    assert next(Run(tmp_path, "R").predictions()).dname == str(copy.folder)
    assert list(read_json(Run(tmp_path, "R").config_path)["source_runs"]) == [
        str(tmp_path / "predictions/R--1-of-2"),
        "R--2-of-2",
        str(copy.folder),
    ]
    assert sorted((tmp_path / "far").rglob("*")) == before


def test_shards_that_were_run_otherwise_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"benchmark": "bench", "benchmark_digest": "d1", "tries": 1}
    a_shard(tmp_path, 1, record("a"), record("d"), identity=known)
    a_shard(tmp_path, 2, record("b"), record("e"), identity={**known, "tries": 2})
    a_shard(tmp_path, 3, record("c"), record("f"), identity=known, shard={"digest": "other", "tasks": 9})
    merged(tmp_path, *(f"R--{number}-of-3" for number in (1, 2, 3)), name="all")
    assert said(capsys) == [
        "note: 'R--3-of-3' was cut from another selection: 9 tasks (other), not 6 tasks (d)",
        "note: 'R--2-of-3' was run with other settings: tries 2, not 1",
        "note: missing of the 3 shards of 'R': 3, with 2 tasks, not measured but where another run has them",
    ]
    assert shards_of(tmp_path, "all")["missing"] == [3]
    assert "tries" not in read_json(Run(tmp_path, "all").config_path)["identity"]


def test_a_shard_of_another_whole_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_shard(tmp_path, 1, record("a"), record("c"), record("e"), of=2)
    a_shard(tmp_path, 2, record("b"), record("d"), record("f"), of=2)
    a_shard(tmp_path, 1, record("a"), record("d"))
    merged(tmp_path, "R--1-of-2", "R--2-of-2", "R--1-of-3", name="all")
    assert said(capsys) == ["note: 'R--1-of-3' is a shard, but not one of 2 of 'R'"]
    assert shards_of(tmp_path, "all")["given"] == [1, 2]


def test_shards_of_one_whole_keep_its_identity(tmp_path: Path) -> None:
    known = {"benchmark": "bench", "benchmark_digest": "d1", "models": ["m:whole"], "tries": 1}
    for number, one in enumerate("ab", start=1):
        a_shard(tmp_path, number, record(one), of=2, identity=known)
    merged(tmp_path, "R--1-of-2", "R--2-of-2")
    assert read_json(Run(tmp_path, "R").config_path)["identity"] == known


def test_a_whole_that_was_run_as_such_is_not_overwritten(tmp_path: Path) -> None:
    a_run(tmp_path, "R", record("a"))
    a_shard(tmp_path, 1, record("a"), of=2)
    a_shard(tmp_path, 2, record("b"), of=2)
    with pytest.raises(UsageError, match="a run 'R' already that was not made of several"):
        merged(tmp_path, "R--1-of-2", "R--2-of-2")
