"""`--repeat K`, before anything is asked: names, seeds, tasks, and what cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrial.errors import UsageError
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict import groups
from retrial.predict.plan import make_ladder
from retrial.store.runs import Run
from tests.support.exercises import write_exercise


@pytest.fixture
def options(home: Path, tmp_path: Path) -> HarnessOptions:
    """Of a benchmark of eight tasks."""
    for number in range(8):
        write_exercise(tmp_path / "bench", f"sum-{number}")
    return HarnessOptions(
        benchmark=str(tmp_path / "bench"),
        model=(ModelChoice(name="gpt-test"),),
        api_base="http://127.0.0.1:9",
        repeat=3,
    )


def changed(options: HarnessOptions, **fields: Any) -> HarnessOptions:
    return replace(options, **fields)


def test_every_run_has_the_same_tasks_and_the_next_seed(options: HarnessOptions) -> None:
    found = groups.make_group(changed(options, seed=7, sample_size=3), ())
    assert found.group.name == "bench--edit--gpt-test"
    assert [(each.run, each.seed) for each in found.rows] == [
        ("bench--edit--gpt-test.1", 7),
        ("bench--edit--gpt-test.2", 8),
        ("bench--edit--gpt-test.3", 9),
    ]
    first = [task.instance_id for task in found.plans[0].tasks]
    assert len(first) == 3
    assert all([task.instance_id for task in plan.tasks] == first for plan in found.plans)
    assert [plan.rungs[0].options.seed for plan in found.plans] == [7, 8, 9]


def test_a_sample_is_drawn_with_the_seed_that_was_given(options: HarnessOptions) -> None:
    """Or runs would be about other tasks; these two seeds do draw others."""
    samples = [
        {task.instance_id for task in groups.make_group(changed(options, seed=seed, sample_size=3), ()).plans[1].tasks}
        for seed in (0, 1)
    ]
    assert samples[0] != samples[1]


def test_seeds_that_models_have_of_their_own_move_on_too(options: HarnessOptions) -> None:
    ladder = (
        ModelChoice(name="a", overrides={"seed": 100, "max_tokens": 5}),
        ModelChoice(name="b", overrides={"max_tokens": 6}),
    )
    found = groups.make_group(changed(options, model=ladder, seed=1), ())
    seeds = [[rung.options.seed for rung in plan.rungs] for plan in found.plans]
    assert seeds == [[100, 1], [101, 2], [102, 3]]
    assert [rung.options.max_tokens for rung in found.plans[2].rungs] == [5, 6]


def test_a_later_attempt_goes_on_from_its_own_runs_seed(
    options: HarnessOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    found = groups.make_group(changed(options, tries=2, seed=5), ())
    asked = [
        [(step.sampling.seed, step.sampling.temperature) for step in make_ladder(plan).steps()] for plan in found.plans
    ]
    assert asked == [[(5, 0.0), (6, 0.7)], [(6, 0.0), (7, 0.7)], [(7, 0.0), (8, 0.7)]]


def test_all_runs_share_the_budget_with_those_of_earlier_goes(home: Path, options: HarnessOptions) -> None:
    first = groups.make_group(changed(options, run="r"), ())
    assert [run.name for run in first.plans[0].group_siblings] == ["r.2", "r.3"]
    assert {plan.grid for plan in first.plans} == {"r"}
    stored = {"program": "harness.py", "kind": "repeats", "identity": first.identity, "runs": list(first.rows)}
    Run(home, "r").write_config(stored)
    fewer = groups.make_group(changed(options, run="r", repeat=2), ())
    assert [plan.run.name for plan in fewer.plans] == ["r.1", "r.2"]
    assert [run.name for run in fewer.plans[0].group_siblings] == ["r.2", "r.3"]
    with pytest.raises(UsageError, match="seed: 0 then, 4 now"):
        groups.make_group(changed(options, run="r", seed=4), ())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"grid": True}, "does not go with --grid"),
        ({"shard": "1/2"}, "does not go with --shard"),
        ({"model": (ModelChoice(name="replay:old"),)}, "replay:RUN has the replies to one"),
    ],
)
def test_what_cannot_be_repeated_is_refused(options: HarnessOptions, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        groups.make_group(changed(options, **fields), ())


def test_a_run_of_that_name_is_no_group(home: Path, options: HarnessOptions) -> None:
    Run(home, "r").write_config({"program": "harness.py", "identity": {}})
    with pytest.raises(UsageError, match="'r' is one run already"):
        groups.make_group(changed(options, run="r"), ())
