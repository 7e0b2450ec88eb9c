"""Two runs side by side: every number counted by hand, every sentence as people read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrial.errors import UsageError
from retrial.reports.analysis.pairs import corrected, pair, row
from retrial.reports.analysis.run_conditions import differences, read_results
from retrial.store.json_io import to_json
from retrial.store.manifest import AgentFacts, Manifest
from tests.support.plain import plain
from tests.support.rows import attempt, summary
from tests.support.rows import record as record_of
from tests.support.sides import CONFIG, IDENTITY, PROVENANCE, content, side

# What is compared


def test_only_tasks_that_both_measured_are_compared() -> None:
    found = pair(side("A", "++--+?+ e"), side("B", "+-+-?++++"))
    assert found.both == ("task-0000", "task-0006")
    assert found.lost == ("task-0001",)
    assert found.gained == ("task-0002", "task-0008")
    assert found.neither == ("task-0003",)
    assert found.only_in_a == ("task-0004",)
    assert found.only_in_b == ("task-0005", "task-0007")
    assert found.common == 6
    assert found.difference == pytest.approx(100 / 6)


def test_the_record_has_both_rates_on_the_common_tasks_and_the_difference_between_them() -> None:
    written = plain(row(pair(side("A", "+" * 10 + "-" * 30), side("B", "-" * 4 + "+" * 18 + "-" * 18))))
    assert (written["rate_a"]["resolved"], written["rate_a"]["of"]) == (10, 40)
    assert (written["rate_b"]["percent"], written["difference"]) == (45.0, 20.0)
    assert (len(written["gained"]), len(written["lost"])) == (12, 4)
    assert written["low"] < 20.0 < written["high"]
    # Of 16 that differ, 4 or fewer on one side: 2 × 2,517 of 65,536 ways.
    assert written["p"] == written["p_adjusted"] == pytest.approx(2 * 2517 / 65536)
    assert written["more_than_chance"] is False
    assert written["tasks_needed"] > 40


# What is said


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (
            "-" * 20,
            "+" * 9 + "-" * 11,
            "B solves 45.0 points more than A on the 20 tasks that both measured; "
            "that is more than chance (p = 0.004).",
        ),
        (
            "+" * 30,
            "-" * 30,
            "B solves 100.0 points less than A on the 30 tasks that both measured; "
            "that is more than chance (p < 0.001).",
        ),
        (
            "-" * 40,
            "+" + "-" * 39,
            "Cannot tell B from A on 40 common tasks (B 2.5 points more, p = 1.00): "
            "to see a difference of that size you would need about 280 more tasks.",
        ),
        (
            "-",
            "+",
            "Cannot tell B from A on 1 common task (B 100.0 points more, p = 1.00): "
            "to see a difference of that size you would need about 5 more tasks.",
        ),
        (
            "+-+",
            "-++",
            "B and A solve equally many of the 3 tasks that both measured (1 only B, 1 only A): no difference is seen.",
        ),
        ("+-", "+-", "B and A solve the same on the 2 tasks that both measured: no difference is seen."),
        ("+ ", " +", "B and A have measured no task in common: they cannot be compared."),
        ("?", "+", "B and A have measured no task in common: they cannot be compared."),
    ],
)
def test_what_can_be_said_is_said_in_one_sentence(a: str, b: str, sentence: str) -> None:
    assert pair(side("A", a), side("B", b)).sentence == sentence


def test_a_difference_is_never_rounded_to_none() -> None:
    found = pair(side("A", "-" * 3000), side("B", "-" * 2999 + "+"))
    assert "B 0.03 points more, p = 1.00" in found.sentence


def test_of_several_pairs_what_one_test_would_call_different_may_be_chance() -> None:
    a, b, c = side("A", "-" * 20), side("B", "+" * 6 + "-" * 14), side("C", "-" * 20)
    alone = pair(a, b)
    assert alone.more_than_chance and "p = 0.031" in alone.sentence
    together = corrected([pair(a, b), pair(a, c), pair(b, c)])
    assert [each.adjusted for each in together] == pytest.approx([3 * 0.03125, 1.0, 3 * 0.03125])
    assert [each.more_than_chance for each in together] == [False, False, False]
    assert "p = 0.031; for 3 pairs at once, by Holm, p = 0.094" in together[0].sentence
    assert together[0].sentence.startswith("Cannot tell B from A")


def test_one_pair_needs_no_correction() -> None:
    (found,) = corrected([pair(side("A", "-" * 6), side("B", "+" * 6))])
    assert (found.adjusted, found.said) == (0.03125, "p = 0.031")


# Conditions


def warnings(
    config: dict[str, Any] | None = None, provenance: dict[str, Any] | None = None, **fields: Any
) -> list[str]:
    """Of a run that differs in this from one that does not."""
    other = side("B", "++", {**CONFIG, **(config or {})}, provenance={**PROVENANCE, **(provenance or {})}, **fields)
    return list(differences(side("A", "++"), other).warnings)


def identity(**changed: Any) -> dict[str, Any]:
    return {"identity": {**IDENTITY, **changed}}


def test_the_same_conditions_are_nothing_to_speak_of() -> None:
    found = differences(side("A", "++"), side("B", "--"))
    assert (found.warnings, found.differs_in) == ((), ())


@pytest.mark.parametrize(
    ("config", "provenance", "warning"),
    [
        (identity(turns=3), {}, "turns differs: 2 in A, 3 in B"),
        (identity(max_tokens=200), {}, "max_tokens differs: 100 in A, 200 in B"),
        (identity(map_tokens=5), {}, "map_tokens differs: none in A, 5 in B"),
        (identity(benchmark_digest="d2"), {}, "benchmark_digest differs: d1 in A, d2 in B"),
        (
            {"limits": {"timeout_seconds": 300.0, "test_timeout_seconds": 9.0}},
            {},
            "limit test_timeout_seconds of phase 1 differs: none in A, 9.0 in B",
        ),
        ({}, {"sandbox": {"sandbox": "docker"}}, "sandbox differs: bwrap in A, docker in B"),
        ({}, {"retrial": "2"}, "version of Retrial differs: 1 in A, 2 in B"),
        ({}, {"harness": {"retrial": "2"}}, "version of Retrial in phase 1 differs: 1 in A, 2 in B"),
        ({}, {"benchmark": {"source": "bench", "digest": "d2"}}, "benchmark_digest differs: d1 in A, d2 in B"),
        (
            {},
            {"environments": {"python": {"digest": "e2", "versions": ["Python 3.14"]}}},
            "environment differs (python): Python 3.13 in A, Python 3.14 in B",
        ),
        (
            {},
            {"environments": {"python": {"digest": "e2", "versions": ["Python 3.13"]}}},
            "environment differs (python)",
        ),
        (
            {"sandbox": {"sandbox": "bwrap", "environments": {"python": {"digest": "e2", "versions": []}}}},
            {},
            "environment of phase 1 differs (python): Python 3.13 in A, none in B",
        ),
    ],
)
def test_other_conditions_are_warned_of(config: dict[str, Any], provenance: dict[str, Any], warning: str) -> None:
    assert warnings(config, provenance) == [warning]


def test_what_results_alone_can_tell_is_warned_of() -> None:
    first = side("A", "+", manifest=Manifest(identity={"visible_tests": "all"}))
    isolated = AgentFacts(isolated=False)
    second = side("B", "+", manifest=Manifest(identity={"visible_tests": "none"}, agent=isolated))
    assert differences(side("B", "+"), first).warnings == ()
    assert differences(first, second).warnings == ("visible_tests differs: all in A, none in B",)
    retried = side("B", "+", records={"task-0000": summary(record_of("task-0000", attempt(1), attempt(2), chosen=2))})
    assert differences(side("A", "+"), retried).warnings == ("attempts differs: 1 in A, 2+ in B",)


def test_other_tasks_are_warned_of() -> None:
    found = differences(side("A", "++ "), side("B", " ++", skipped={"task-0009": "no compiler"}))
    assert found.warnings == ("selection differs: 1 task only in A, 2 only in B",)


def test_what_a_comparison_is_about_is_no_warning() -> None:
    other = side("B", "++", {**CONFIG, **identity(agent="aider", models=["n:diff", "m:whole"], seed=7)})
    found = differences(side("A", "++"), other)
    assert found.warnings == ()
    assert found.differs_in == (
        "agent: edit in A, aider in B",
        "models: m:whole in A, n:diff, m:whole in B",
        "seed: 0 in A, 7 in B",
    )


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    found = differences(side("A", "++"), side("B", "++", {}))
    assert found.warnings == ("how B was made is not known here: its settings could not be compared",)


def test_runs_of_two_benchmarks_are_refused_but_a_folder_may_have_moved() -> None:
    moved = side("B", "+", provenance={**PROVENANCE, "benchmark": {"source": "elsewhere/bench", "digest": "d1"}})
    assert pair(side("A", "+"), moved).common == 1
    other = side("B", "+", provenance={**PROVENANCE, "benchmark": {"source": "other", "digest": "d2"}})
    with pytest.raises(UsageError, match="'B' is about other, and 'A' about bench"):
        pair(side("A", "+"), other)
    unknown = side("B", "+", provenance={"benchmark": {"source": "other"}})
    with pytest.raises(UsageError, match="same benchmark"):
        pair(side("A", "+", provenance={"benchmark": {"source": "bench"}}), unknown)


# What is read


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is no JSON object"),
        ('{"kind": "grid"}', "is of a grid"),
        ("{}", "is no results.json"),
        ('{"instances": [{"instance_id": "a", "outcome": "odd"}]}', "is no results.json"),
        ('{"instances": [], "not_measured": {}, "skipped": [], "rate": {}}', "is no results.json"),
    ],
)
def test_what_is_no_result_of_a_run_is_refused(tmp_path: Path, written: str, words: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(written)
    with pytest.raises(UsageError, match=words):
        read_results(path)


def test_what_report_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(to_json(content("A", "+-")))
    assert read_results(path).rate.percent == 50.0


def test_pairs_with_nothing_in_common_do_not_make_the_others_less_sure() -> None:
    a, b, nobody = side("a", "+" * 6), side("b", "-" * 6), side("nobody", "?" * 6)
    alone = corrected([pair(a, b)])[0]
    among = corrected([pair(a, nobody), pair(a, b), pair(nobody, b)])
    assert (among[1].adjusted, among[1].pairs) == (alone.adjusted, 1)
    assert among[1].more_than_chance
    assert not among[0].more_than_chance
