"""Every case of `exploits/` is scored as any patch is, on every sandbox.

What is hostile does not resolve, for the right reason, and what is merely odd does. Nothing runs outside a sandbox.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial import registry
from retrial.grading.verdict_cache import Verdicts
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, Scorer
from retrial.types import Outcome
from tests.conftest import run_cache
from tests.parts import ready
from tests.red_team.cases import KINDS, Case, benchmark, cases, task

pytestmark = pytest.mark.real


class Court:
    """Scores cases; what the reference of an exercise showed is shared by all workers."""

    def __init__(self, root: Path) -> None:
        self._benchmark = benchmark(root)
        self._verdicts = Verdicts(run_cache() / "red-team")

    def score(self, name: str, case: Case) -> Scored:
        about = task(self._benchmark, case)
        sandbox = ready(name, about.environment)
        scorer = Scorer(benchmark=self._benchmark, sandbox=sandbox, verdicts=self._verdicts, timeout=case.timeout)
        submission = Submission(instance_id=case.instance_id, model_name_or_path=case.name, patch=case.patch())
        return scorer.score(about, submission)


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(tmp_path_factory.mktemp("red-team") / "exercises")


CASES = cases(*KINDS)
DECIDED = ("resolved", "tests_failed", "tampered")
STANDING = {(case.language, case.outcome[0]): case for case in reversed(CASES) if not case.gap}
"""Language and outcome → the first such case; it stands for the others in `make test`."""


def marks(case: Case, sandbox: str) -> list[pytest.MarkDecorator]:
    stands = case is STANDING.get((case.language, case.outcome[0])) and case.outcome[0] in DECIDED
    return [pytest.mark.smoke] if stands and sandbox == "bwrap" else []


# Attacks of our own are many, and the sandboxes differ in nothing that they could use: the quicker one has them all.
HEARINGS = [
    pytest.param(case, name, id=f"{case.name}-{name}", marks=marks(case, name))
    for case in CASES
    for name in registry.names("sandboxes")
    if case.kind != "attack" or name == "bwrap"
]


@pytest.mark.parametrize(("case", "sandbox"), HEARINGS)
def test_a_case_has_the_verdict_that_it_deserves(case: Case, sandbox: str, court: Court) -> None:
    scored = court.score(sandbox, case)
    verdict = scored.verdict
    # With little time the reference may need more too, which changes nothing for one that never ends.
    assert not scored.void or case.timeout
    assert verdict.outcome in case.outcome, verdict.reason
    assert verdict.rule == (case.rule if verdict.outcome is Outcome.TAMPERED else ""), verdict.reason
    assert case.reason in verdict.reason
    assert verdict.dropped == case.dropped
    assert verdict.proof == (case.proof if verdict.resolved else "")
