"""Shards: together exactly the selection, each by itself a run that goes on, and one result again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks import shards
from retrial.benchmarks.shards import Shard
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.predict.manifest import RunManifest
from retrial.predict.plan import Plan, make_plan
from retrial.store.runs import Run
from tests.support.exercises import write_exercise
from tests.support.rows import task

LANGUAGES = ("cpp", "go", "java", "javascript", "python", "rust")
TASKS = tuple(task(f"aider_{language}_{number:02}") for language in LANGUAGES for number in range(11))


def ids(tasks: object) -> list[str]:
    return [each.instance_id for each in tasks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 16, 65, 66, 67, 200])
def test_all_shards_together_are_the_selection_and_none_is_larger_than_another(of: int) -> None:
    parts = [ids(Shard(number=number, of=of).part(TASKS)) for number in range(1, of + 1)]
    assert sorted(each for part in parts for each in part) == sorted(ids(TASKS))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    known = [Shard(number=number, of=of, tasks=len(TASKS)).size for number in range(1, of + 1)]
    assert known == sizes


def test_languages_are_spread_evenly() -> None:
    for number in range(1, 5):
        part = ids(Shard(number=number, of=4).part(TASKS))
        counts = [sum(f"_{language}_" in each for each in part) for language in LANGUAGES]
        assert set(counts) <= {2, 3}


def test_the_order_of_the_tasks_does_not_matter() -> None:
    shard = Shard(number=2, of=5)
    assert shard.part(TASKS) == shard.part(TASKS[::-1])


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "x", "3/", "/3", "3", "1/0", "-1/4", "1.5/4", "1/4/2", "٣/٤", "1 / 4", "1/9999999", "1/4\n2"]
)
def test_what_is_no_shard_is_refused_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(UsageError, match="--shard takes I/N"):
        shards.parse(text)


def test_a_shard_as_people_write_it() -> None:
    assert shards.parse("3/16") == Shard(number=3, of=16)
    assert shards.parse("") is None


@pytest.fixture
def bench(tmp_path: Path, home: Path) -> Path:
    for number in range(7):
        write_exercise(tmp_path / "bench", f"sum-{number}")
    return tmp_path / "bench"


def planned(bench: Path, text: str, **options: object) -> Plan:
    return make_plan(HarnessOptions(benchmark=str(bench), agent="null", shard=text, **options))  # type: ignore[arg-type]


def test_a_shard_is_named_after_the_whole_whoever_names_that(bench: Path) -> None:
    assert planned(bench, "2/3").run.name == "bench--null--2-of-3"
    assert planned(bench, "2/3", run="mine").run.name == "mine--2-of-3"
    assert planned(bench, "").run.name == "bench--null"


def test_a_shard_is_cut_from_what_was_selected(bench: Path) -> None:
    whole = ids(planned(bench, "", sample_size=4, seed=5).tasks)
    parts = [planned(bench, f"{number}/3", sample_size=4, seed=5) for number in (1, 2, 3)]
    assert sorted(each for part in parts for each in ids(part.tasks)) == whole
    assert {(part.shard.tasks, part.shard.digest) for part in parts if part.shard} == {
        (4, parts[0].shard.digest if parts[0].shard else "")
    }


def stored(plan: Plan) -> Run:
    """A run.json as harness.py leaves it, as far as identity goes."""
    from retrial.predict.manifest import identity

    assert plan.shard
    plan.run.write_config({"program": "harness.py", "identity": identity(plan), "shard": plan.shard, "selected": []})
    return plan.run


def test_the_same_command_goes_on(bench: Path) -> None:
    stored(planned(bench, "2/3"))
    RunManifest(planned(bench, "2/3")).refuse_other()


def test_another_selection_under_the_same_name_is_refused_with_the_difference(bench: Path) -> None:
    stored(planned(bench, "2/3"))
    with pytest.raises(UsageError, match=r"selection: 7 tasks \(\w+\) then, 5 tasks \(\w+\) now"):
        RunManifest(planned(bench, "2/3", sample_size=5)).refuse_other()


def test_a_whole_run_under_a_shards_name_is_refused_and_the_other_way_round(bench: Path) -> None:
    stored(planned(bench, "2/3"))
    with pytest.raises(UsageError, match="shard: 2/3 then, None now"):
        RunManifest(planned(bench, "", run="bench--null--2-of-3")).refuse_other()


def test_the_identity_of_all_shards_is_the_same(bench: Path) -> None:
    found = [stored(planned(bench, f"{number}/3")).manifest() for number in (1, 2, 3)]
    assert found[0].identity == found[1].identity == found[2].identity
    first, second, third = (shards.stored(each) for each in found)
    assert first and second and third
    assert (first.number, second.number, third.number) == (1, 2, 3)
    assert first == replace(third, number=1)


def test_the_tasks_of_a_shard_that_is_not_there_are_known_from_the_others(bench: Path) -> None:
    third, first = planned(bench, "3/3", sample_size=5), planned(bench, "1/3", sample_size=5)
    assert first.shard
    found = shards.stored(stored(first).manifest())
    assert found is not None
    everything = first.benchmark.tasks()
    assert ids(replace(found, number=3).part(shards.whole_tasks(found, everything))) == ids(third.tasks)
    assert shards.whole_tasks(found, everything[4:]) == (), "the benchmark has changed"


def test_a_prior_run_is_looked_at_after_the_cut_and_a_shard_may_be_settled(bench: Path, home: Path) -> None:
    from tests.support.rows import record

    whole = planned(bench, "")
    run = Run(home, "before")
    provenance = whole.benchmark.provenance
    identity = {"benchmark": provenance["source"], "benchmark_digest": provenance["digest"]}
    run.write_config({"program": "harness.py", "run": "before", "identity": identity, "selected": ids(whole.tasks)})
    settled = ids(planned(bench, "1/3").tasks)
    for each in settled:
        run.write_prediction(each, record(each), "")
    for text, left, out in (("1/3", 0, 3), ("2/3", 2, 0)):
        plan = planned(bench, text, prior=("before",))
        assert (len(plan.tasks), plan.excluded_by_prior) == (left, out)
        assert plan.shard and plan.shard.digest == (planned(bench, "1/3").shard or plan.shard).digest


def test_the_name_of_a_whole_means_its_shards(bench: Path, home: Path) -> None:
    for text in ("10/12", "2/12", "1/12"):
        stored(planned(bench, text))
    Run(home, "bench--null--x-of-y").write_config({"program": "harness.py", "identity": {}})
    names = [f"bench--null--{number}-of-12" for number in (1, 2, 10)]
    assert list(shards.expand_to_shards(home, ["bench--null"])) == names
    assert shards.expand_to_shards(home, ["bench--null--2-of-12"]) == ("bench--null--2-of-12",)
    assert shards.expand_to_shards(home, ["../up", "elsewhere"]) == ("../up", "elsewhere")


def test_a_whole_that_is_there_itself_is_not_its_shards_unless_it_was_made_of_them(bench: Path, home: Path) -> None:
    first, second = (stored(planned(bench, text)).name for text in ("1/2", "2/2"))
    whole = Run(home, "bench--null")
    whole.write_config({"program": "report.py", "sources": [first]})
    assert shards.expand_to_shards(home, ["bench--null"]) == (first, second), "there is more by now"
    whole.write_config({"program": "report.py", "sources": [first, "bench--null--9-of-9"]})
    assert shards.expand_to_shards(home, ["bench--null"]) == ("bench--null",), "made anew it would lose something"
    whole.write_config({"program": "harness.py"})
    assert shards.expand_to_shards(home, ["bench--null"]) == ("bench--null",)


def test_a_whole_that_was_cut_in_two_ways_is_not_guessed_at(bench: Path, home: Path) -> None:
    for text in ("1/2", "1/3"):
        stored(planned(bench, text))
    with pytest.raises(UsageError, match="out of 2 and 3: name those"):
        shards.expand_to_shards(home, ["bench--null"])
