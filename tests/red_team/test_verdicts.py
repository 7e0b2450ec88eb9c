"""Every case of `exploits/` is scored as any patch is, on every sandbox.

What is hostile does not resolve, for the right reason, and what is merely odd does. Nothing runs outside a sandbox.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from retrial import registry
from retrial.cache import Verdicts
from retrial.protocols import Context, Sandbox
from retrial.score import Scored, Scorer
from retrial.submissions import Submission
from retrial.types import Outcome
from tests.conftest import require
from tests.red_team.cases import KINDS, Case, benchmark, cases, task

pytestmark = pytest.mark.real
AT_ONCE = 2


class Court:
    """Scores cases in the order in which they were summoned, some at once, before anybody asks about them."""

    def __init__(self, root: Path, pool: ThreadPoolExecutor) -> None:
        self._benchmark = benchmark(root / "exercises")
        self._verdicts = Verdicts(root)
        self._pool = pool
        self._locks: dict[object, threading.Lock] = defaultdict(threading.Lock)
        self._scored: dict[tuple[str, str], Future[Scored]] = {}
        self._missing: dict[tuple[str, str], str] = {}

    def summon(self, name: str, case: Case) -> None:
        sandbox: Sandbox = registry.module("sandboxes", name).make(Context(options=None))
        if not self._unavailable(sandbox, case):
            self._scored[name, case.name] = self._pool.submit(self._score, sandbox, case)

    def hear(self, name: str, case: Case) -> Scored:
        require(name, self._missing[name, case.language])
        return self._scored[name, case.name].result()

    def _unavailable(self, sandbox: Sandbox, case: Case) -> str:
        key = sandbox.name, case.language
        if key not in self._missing:
            environment = task(self._benchmark, case).environment
            self._missing[key] = sandbox.unavailable((environment,))
            if not self._missing[key]:
                sandbox.prepare(environment, lambda text: None)
        return self._missing[key]

    def _score(self, sandbox: Sandbox, case: Case) -> Scored:
        about = task(self._benchmark, case)
        court = Scorer(benchmark=self._benchmark, sandbox=sandbox, verdicts=self._verdicts, timeout=case.timeout)
        # Once for all cases of an exercise: what its reference shows is kept.
        with self._locks[sandbox.name, case.instance_id, case.timeout]:
            court.score(about, _submission(case, self._benchmark.answer(case.instance_id).patch))
        return court.score(about, _submission(case, case.patch()))


def _submission(case: Case, patch: str) -> Submission:
    return Submission(instance_id=case.instance_id, model_name_or_path=case.name, patch=patch)


@pytest.fixture(scope="session")
def court(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """With every case that was selected on its way."""
    asking = [item for item in request.session.items if "court" in getattr(item, "fixturenames", ())]
    chosen = [item.callspec.params for item in asking if hasattr(item, "callspec")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        court = Court(tmp_path_factory.mktemp("court"), pool)
        for parameters in chosen:
            court.summon(parameters["sandbox"], parameters["case"])
        yield court
        pool.shutdown(cancel_futures=True)


# Attacks of our own are many, and the sandboxes differ in nothing that they could use: the quicker one has them all.
HEARINGS = [
    pytest.param(case, name, id=f"{case.name}-{name}")
    for case in cases(*KINDS)
    for name in registry.names("sandboxes")
    if case.kind != "attack" or name == "bwrap"
]


@pytest.mark.parametrize(("case", "sandbox"), HEARINGS)
def test_a_case_has_the_verdict_that_it_deserves(case: Case, sandbox: str, court: Court) -> None:
    scored = court.hear(sandbox, case)
    verdict = scored.verdict
    # With little time the reference may need more too, which changes nothing for one that never ends.
    assert not scored.void or case.timeout
    assert verdict.outcome in case.outcome, verdict.reason
    assert verdict.rule == (case.rule if verdict.outcome is Outcome.TAMPERED else ""), verdict.reason
    assert case.reason in verdict.reason
    assert verdict.dropped == case.dropped
    assert verdict.proof == (case.proof if verdict.resolved else "")
