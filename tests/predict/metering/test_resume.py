"""Going on with a task in the middle of an attempt: nothing is lost, nothing paid for twice, nothing comes out else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrial.agents.edit import EditAgent
from retrial.attempts import AgentResult, Prediction
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Reply, Request, Usage
from retrial.errors import ModelError
from retrial.formats import whole
from retrial.grading import verdict_cache
from retrial.grading.visible_check import JournalledVerdicts, VisibleCheck
from retrial.models.prices import Price
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict.ladder import Ladder, Rung, solve
from retrial.predict.metering.driver_service import Budget
from retrial.predict.metering.model_session import worst_case_cost
from retrial.predict.metering.recording import RecordedModel, Recording
from retrial.protocols import Agent, Chat, Model, Sandbox, Workspace, WorkspaceCheck
from retrial.store import attempt_log, journal, transcript
from retrial.store.events import AttemptOver, Replied, Requested
from retrial.store.json_io import to_json
from retrial.store.records import prediction_record
from retrial.store.runs import Run
from retrial.store.spending import committed
from retrial.types import Task, Verdict
from tests.parts import ready
from tests.support.drivers import a_ledger
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise

pytestmark = pytest.mark.real

TASK = "aider_python_sum_up"
PRICE = Price(prompt=1.0, completion=1.0)
COST, SECONDS = 0.001, 2.5
MALFORMED = "I would simply add the two numbers."
SCRIPT = {
    ("one", 0): [MALFORMED, reply(WRONG), reply(WRONG.replace("-", "*"))],
    ("two", 0): [reply(WRONG), MALFORMED, reply("def add(a, b:\n")],
    ("one", 1): [reply(WRONG), reply(RIGHT)],
}
"""(model, seed) → what it says, one after the other."""
ALL = [(model, seed, turn) for (model, seed), said in SCRIPT.items() for turn in range(len(said))]


class Killed(BaseException):
    """What kill -9 is like from inside: nothing catches it."""


@dataclass
class Provider:
    """Two models, and what they were asked."""

    lives: int = 1000
    """The process is killed when so many questions are answered."""
    broken: tuple[str, int, int] | None = None
    """The question that it fails at."""
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def model(self, name: str) -> Model:
        return Scripted(name, self)


class Scripted:
    def __init__(self, name: str, provider: Provider) -> None:
        self.name, self._provider = name, provider

    def complete(self, request: Request) -> Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        place = (self.name, request.seed, turn)
        if len(self._provider.asked) == self._provider.lives:
            raise Killed
        if place == self._provider.broken:
            raise ModelError("it is down")
        self._provider.asked.append(place)
        usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5, cost=COST, seconds=SECONDS, retries=turn)
        return Reply(text=SCRIPT[self.name, request.seed][turn], usage=usage, model=f"{self.name}-served")


@dataclass(frozen=True)
class World:
    """One task, and what is known of its tests."""

    benchmark: Exercism
    sandbox: Sandbox
    cache: Path
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        return self.benchmark.tasks()[0]

    def go(
        self,
        home: Path,
        model: Callable[[str], Model],
        *,
        agent: Agent | None = None,
        tries: int = 2,
        seconds: float = 600.0,
        limit: float | None = None,
        budget: Budget | None = None,
    ) -> Prediction:
        """One process's go at the task, as `PredictWorker` does it."""
        agent = agent or EditAgent(edit_format=whole.make(), turns=2, reflections=1, map_tokens=0, cache=self.cache)
        rungs = [
            Rung(
                name=name,
                model=model(name),
                agent=agent,
                edit_format="whole",
                price=PRICE,
                options=HarnessOptions(max_tokens=50).of(ModelChoice(name=name)),
            )
            for name in ("one", "two")
        ]
        ladder = Ladder(rungs=tuple(rungs), tries=tries, seconds=seconds, name="edit--one--two", max_cost=limit)
        ledger = a_ledger(home, TASK, budget, limit)
        known = {**self.verdicts, **(ledger.earlier.verdicts if ledger.earlier else {})}
        verdicts, journalled = verdict_cache.Verdicts(self.cache), JournalledVerdicts(recorded=known)
        check = VisibleCheck(self.benchmark, self.task, self.sandbox, verdicts, journalled=journalled)
        return solve(self.task, ladder, check, ledger)


@dataclass(frozen=True)
class Whole:
    """What came of an undisturbed run."""

    world: World
    record: Any
    content: bytes
    page: str


def unmeasured(value: Any) -> Any:
    """Without what a clock said here."""
    if isinstance(value, dict):
        return {name: unmeasured(each) for name, each in value.items() if name not in ("seconds", "cpu_seconds")}
    return [unmeasured(each) for each in value] if isinstance(value, list) else value


def record(prediction: Prediction) -> Any:
    return unmeasured(json.loads(to_json(prediction_record(prediction))))


def written(home: Path) -> bytes:
    return Run(home, "r").journal(TASK).content()


def page(home: Path) -> str:
    return transcript.markdown(TASK, "plausible", journal.read(written(home)))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    world = World(Exercism(write_exercise(folder / "bench"), "here", 2), ready("bwrap"), folder / "cache")
    provider = Provider()
    prediction = world.go(folder, provider.model)
    assert provider.asked == ALL
    assert (len(prediction.attempts), prediction.chosen.number, prediction.chosen.plausible) == (3, 3, True)
    content = written(folder)
    known = attempt_log.verdicts(journal.read(content))
    return Whole(World(world.benchmark, world.sandbox, world.cache, known), record(prediction), content, page(folder))


def begun(home: Path, content: bytes) -> None:
    """An earlier go has left this."""
    file = Run(home, "r").folder / "journal" / f"{TASK}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


def replies(content: bytes) -> int:
    return sum(isinstance(event, Replied) for event in journal.read(content))


def put_by(content: bytes) -> Sequence[float]:
    """For questions, in their order."""
    return [event.reserved or 0.0 for event in journal.read(content) if isinstance(event, Requested)]


def test_cut_after_any_line_exactly_what_was_not_answered_is_asked(undisturbed: Whole, tmp_path: Path) -> None:
    lines = undisturbed.content.splitlines(keepends=True)
    for cut in range(len(lines) + 1):
        left, home, provider = b"".join(lines[:cut]), tmp_path / str(cut), Provider()
        begun(home, left)
        prediction = undisturbed.world.go(home, provider.model)
        assert provider.asked == ALL[replies(left) :]
        assert record(prediction) == undisturbed.record
        assert page(home) == undisturbed.page
        assert Run(home, "r").spent().cost == pytest.approx(len(ALL) * COST)
        # A question without an end may have been billed.
        lost = put_by(left)[replies(left) :]
        assert committed(journal.read(written(home))) == pytest.approx(len(ALL) * COST + sum(lost))


def test_where_a_line_is_damaged_only_its_attempt_is_asked_again_from_there_on(
    undisturbed: Whole, tmp_path: Path
) -> None:
    lines = undisturbed.content.splitlines(keepends=True)
    places = [json.loads(line) for line in lines]
    calls = [(each["attempt"], each["call"]) for each in places if each["event"] == "request"]
    for number, each in enumerate(places):
        home, provider = tmp_path / str(number), Provider()
        damaged = [*lines[:number], lines[number].replace(b"a", b"b", 1), *lines[number + 1 :]]
        # An attempt's end would tell all that is lost before it.
        begun(home, b"".join(line for line in damaged if b'"event": "attempt_ended"' not in line))
        prediction = undisturbed.world.go(home, provider.model)
        is_lost = each["event"] in ("request", "reply")
        from_there = [call for call in calls if is_lost and call[0] == each["attempt"] and call[1] >= each["call"]]
        assert provider.asked == [ALL[calls.index(call)] for call in from_there]
        assert record(prediction) == undisturbed.record
        assert page(home) == undisturbed.page


@pytest.mark.parametrize("seed", range(4))
def test_killed_over_and_over_at_any_byte_it_comes_to_the_same_end(
    undisturbed: Whole, tmp_path: Path, seed: int
) -> None:
    draw, asked, lost = random.Random(seed), list[tuple[str, int, int]](), 0
    while True:
        provider = Provider(lives=draw.randint(0, 2))
        try:
            prediction = undisturbed.world.go(tmp_path, provider.model)
            break
        except Killed:
            # Of what it wrote last, some bytes may not have come to the disk.
            content = written(tmp_path)
            cut = max(0, len(content) - draw.choice((0, 1, 40, 400)))
            lost += replies(content) - replies(content[:cut])
            (Run(tmp_path, "r").folder / "journal" / f"{TASK}.jsonl").write_bytes(content[:cut])
        finally:
            asked += provider.asked
    assert record(prediction) == undisturbed.record
    assert page(tmp_path) == undisturbed.page
    assert set(asked) == set(ALL)
    assert len(asked) == len(ALL) + lost, "nothing is asked twice but what was lost"


def test_tests_that_were_run_are_not_run_again(undisturbed: Whole, tmp_path: Path) -> None:
    begun(tmp_path, undisturbed.content[: undisturbed.content.rindex(b'{"event": "attempt_ended"')])

    class Refusing:
        def __getattr__(self, name: str) -> object:
            raise AssertionError("every verdict is in the journal")

    alone = World(undisturbed.world.benchmark, Refusing(), undisturbed.world.cache)  # type: ignore[arg-type]
    assert record(alone.go(tmp_path, Provider(lives=0).model)) == undisturbed.record


def test_an_attempt_that_was_not_measured_is_gone_on_with(undisturbed: Whole, tmp_path: Path) -> None:
    world, provider = undisturbed.world, Provider(broken=("one", 0, 2))
    first = world.go(tmp_path, provider.model, tries=1)
    assert "it is down" in first.not_measured
    assert len(provider.asked) == 5
    again = Provider()
    second = world.go(tmp_path, again.model, tries=1)
    assert again.asked == [("one", 0, 2)], "the other model's attempt had ended"
    assert not second.not_measured
    assert record(second)["all_results"] == undisturbed.record["all_results"][:2]
    assert page(tmp_path) == undisturbed.page[: undisturbed.page.index("## Attempt 3")].rstrip() + "\n"


def test_a_run_that_was_gone_on_with_can_be_played_again(undisturbed: Whole, tmp_path: Path) -> None:
    run = Run(tmp_path, "r")
    for broken in (("one", 0, 1), ("two", 0, 1), None):
        undisturbed.world.go(tmp_path, Provider(broken=broken).model)
    run.write_config({"program": "harness.py", "identity": {"models": []}, "selected": [TASK]})
    recording = Recording(run)
    played = undisturbed.world.go(tmp_path / "again", lambda name: RecordedModel(name, recording))
    assert record(played) == undisturbed.record
    assert page(tmp_path / "again") == undisturbed.page == page(tmp_path)
    assert Run(tmp_path / "again", "r").spent() == Usage()


def test_from_a_question_that_differs_on_it_is_asked_anew(
    undisturbed: Whole, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = undisturbed.content[: undisturbed.content.index(b'{"event": "attempt_ended"')]
    begun(tmp_path, left)
    folder = write_exercise(tmp_path / "bench")
    text = folder / "python/exercises/practice/sum-up/.docs/instructions.md"
    text.write_text(text.read_text().replace("the sum of two", "the sum of both"))
    other = World(
        Exercism(folder, "here", 2), undisturbed.world.sandbox, tmp_path / "cache", undisturbed.world.verdicts
    )
    provider = Provider()
    prediction = other.go(tmp_path, provider.model)
    assert provider.asked == ALL
    assert record(prediction) == undisturbed.record
    assert "asked again, for the question differs: message 2 (user), line 3" in caplog.text
    assert page(tmp_path).count("the sum of both") == 3
    assert "the sum of two" not in page(tmp_path), "what was asked before is no part of it"
    spent = (len(ALL) + replies(left)) * COST
    assert committed(journal.read(written(tmp_path))) == pytest.approx(spent), "but it was paid for"


def test_what_replies_took_then_is_the_attempts_time_now(undisturbed: Whole, tmp_path: Path) -> None:
    second = undisturbed.content.index(b'{"event": "request"', undisturbed.content.index(b'"call": 2'))
    begun(tmp_path, undisturbed.content[:second])
    provider = Provider()
    prediction = undisturbed.world.go(tmp_path, provider.model, tries=1, seconds=2 * SECONDS)
    first = prediction.attempts[0]
    assert first.seconds >= 2 * SECONDS
    assert (first.usage.calls, first.usage.seconds, first.usage.cost) == (2, 2 * SECONDS, 2 * COST)
    assert first.effort
    assert first.effort.notes == ("the attempt's 5 seconds were over",)
    assert provider.asked[0] == ("two", 0, 0)


def test_time_that_was_over_stays_over(undisturbed: Whole, tmp_path: Path) -> None:
    second = undisturbed.content.index(b'{"event": "request"', undisturbed.content.index(b'"call": 2'))
    head = json.loads(undisturbed.content.splitlines()[0])
    over = journal.line(AttemptOver(go=head["go"], attempt=1, call=3, kind="OutOfTime", reason="it took too long"))
    begun(tmp_path, undisturbed.content[:second] + over)
    provider = Provider()
    prediction = undisturbed.world.go(tmp_path, provider.model, tries=1)
    assert prediction.attempts[0].effort
    assert prediction.attempts[0].effort.notes == ("it took too long",)
    assert provider.asked[0] == ("two", 0, 0)
    assert page(tmp_path).count("it took too long") == 2, "where it was said, and among the notes"


class Alone:
    """Asks nobody through us, writes what does not count too, and is killed in its second attempt."""

    def __init__(self, lives: int = 10) -> None:
        self.done, self._lives = 0, lives

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        if self.done == self._lives:
            raise Killed
        self.done += 1
        workspace.write(task.editable[0], WRONG.encode())
        workspace.write("conftest.py", b"import sys\n")
        faults = ("no_edit", "malformed", "no_edit")
        return AgentResult(
            edit_outcome=True, tests_outcomes=(check().resolved,), faults=faults, spent=Usage(calls=2, cost=0.1)
        )


def test_of_an_agent_that_asks_on_its_own_whole_attempts_are_kept(undisturbed: Whole, tmp_path: Path) -> None:
    world, nobody = undisturbed.world, Provider(lives=0)
    expected = world.go(tmp_path / "whole", nobody.model, agent=Alone())
    assert expected.attempts[0].counted != expected.attempts[0].patch
    with pytest.raises(Killed):
        world.go(tmp_path, nobody.model, agent=Alone(lives=2))
    again = Alone()
    assert record(world.go(tmp_path, nobody.model, agent=again)) == record(expected)
    assert again.done == 2
    run = Run(tmp_path, "r")
    assert run.spent().cost == committed(run.journal(TASK).events()) == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(3))
def test_no_kill_lets_a_task_spend_more_than_its_limit(undisturbed: Whole, tmp_path: Path, seed: int) -> None:
    draw, billed = random.Random(seed), list[float]()

    class Dear:
        """Every answer is as dear as it can be, and some are lost with the process."""

        def __init__(self, name: str) -> None:
            self.name = name

        def complete(self, request: Request) -> Reply:
            billed.append(worst_case_cost(request, PRICE))
            if draw.random() < 0.4:
                raise Killed
            return Reply(text=reply(WRONG), usage=Usage(calls=1, cost=billed[-1]))

    limit = 6.5 * sum(put_by(undisturbed.content)) / len(ALL)
    while True:
        try:
            prediction = undisturbed.world.go(tmp_path, Dear, limit=limit, tries=20)
            break
        except Killed:
            continue
    # Without the kills it could have gone on: that is no model's failure.
    assert "replies that did not arrive" in prediction.not_measured
    assert len(billed) >= 3
    assert sum(billed) <= limit
    assert committed(journal.read(written(tmp_path))) == pytest.approx(sum(billed))
