"""What `exploits/` holds, read without running any of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks.exercism import Exercism
from retrial.grading.run_check import select
from retrial.system.paths import PROJECT
from tests.red_team.cases import KINDS, Case, benchmark, cases, task
from tests.support import odd_patches

CORPUS = 54
"""Cases of the corpus that this grew from, its patches not counted: none may get lost."""


@pytest.fixture(scope="module")
def exercises(tmp_path_factory: pytest.TempPathFactory) -> Exercism:
    return benchmark(tmp_path_factory.mktemp("exercises"))


def test_the_whole_corpus_is_there_and_every_case_has_a_name_of_its_own() -> None:
    assert len(cases("corpus")) == CORPUS
    assert {case.name for case in cases("patch")} == {path.stem for path in odd_patches.DATA.glob("*.diff")}
    assert [name for name, count in Counter(case.name for case in cases(*KINDS)).items() if count > 1] == []


@pytest.mark.parametrize("language", registry.names("languages"))
def test_every_language_has_attacks_of_our_own_and_honest_oddities(language: str) -> None:
    kinds = Counter(case.kind for case in cases(*KINDS) if case.language == language)
    assert kinds["attack"] >= 2
    assert kinds["odd"] >= 3


def test_only_what_is_honest_or_a_known_gap_may_resolve() -> None:
    for case in cases(*KINDS):
        honest = case.kind == "odd" or case.name.startswith("ok_") or case.name == "bad_utf8"
        assert honest or case.gap or "resolved" not in case.outcome, case.name
        assert case.reason or "resolved" in case.outcome or len(case.outcome) > 1, f"{case.name} needs a reason"


def test_known_gaps_are_documented() -> None:
    page = (PROJECT / "docs" / "trust.md").read_text(encoding="utf-8")
    assert [case.name for case in cases(*KINDS) if case.gap and f"`{case.name}`" not in page] == []


@pytest.mark.parametrize("case", cases(*KINDS), ids=lambda case: case.name)
def test_of_a_patch_counts_what_may_be_changed(case: Case, exercises: Exercism) -> None:
    assert select(task(exercises, case), case.patch()).dropped == case.dropped


def test_nothing_hostile_lies_where_a_tool_of_ours_would_run_it() -> None:
    names = {path.suffix for path in (Path(__file__).parent / "exploits").rglob("*") if path.is_file()}
    assert names == {".toml"}
