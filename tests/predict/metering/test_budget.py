"""Money: what is put by, what is spent, and that no limit is ever passed."""

from __future__ import annotations

import json
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Message, Reply, Request, Sampling, Tool, ToolCall, ToolFunction, Usage
from retrial.errors import BudgetSpent, ModelError, OutOfMoney
from retrial.executors.limiter import FairLimiter
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck
from retrial.models import local, wire
from retrial.models.prices import Price, price
from retrial.options import HarnessOptions, ModelChoice, ModelSettings
from retrial.predict.ladder import Ladder, Rung, solve
from retrial.predict.metering.driver_service import Budget, DriverService, committed_in
from retrial.predict.metering.model_session import ModelSession, TaskLedger, prompt_tokens, task_budget, worst_case_cost
from retrial.protocols import Chat, ModelContext, Sandbox, Workspace, WorkspaceCheck
from retrial.store import journal
from retrial.store.events import Event
from retrial.store.journal import Journal
from retrial.store.records import attempt_record
from retrial.store.runs import Run
from retrial.store.spending import committed
from retrial.system import paths
from retrial.system.shutdown import Stop
from retrial.types import Task
from tests.conftest import Run as Program
from tests.parts import weights
from tests.support.drivers import a_ledger
from tests.support.exercises import RIGHT, WRONG, write_exercise
from tests.support.exercises import reply as file
from tests.support.journals import line
from tests.support.servers import Answer, Asked, ChatServer, reply

PRICE = Price(prompt=1.0, completion=10.0)


def test_what_could_pass_the_limit_is_refused() -> None:
    budget = Budget(1.0, 0.5)
    budget.settle(budget.reserve(0.5), 0.25)
    with pytest.raises(
        BudgetSpent, match=r"The budget of 1 USD is not enough: 0\.7500 USD spent, .*; raise --max-cost\."
    ):
        budget.reserve(0.26)
    budget.reserve(0.25)


def test_a_question_waits_for_money_that_others_may_leave() -> None:
    budget = Budget(1.0)
    first = budget.reserve(0.9)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(budget.reserve, 0.9)
        budget.settle(first, 0.1)
        budget.settle(second.result(60), 0.1)
    assert budget.spent == pytest.approx(0.2)


def test_nobody_waits_for_money_that_cannot_come() -> None:
    budget = Budget(1.0, 0.5)
    budget.reserve(0.1)
    with pytest.raises(BudgetSpent):
        budget.reserve(0.6)


def test_many_at_once_never_pass_it() -> None:
    budget, costs, lock = Budget(1.0), list[float](), threading.Lock()

    def ask(number: int) -> bool:
        try:
            reserved = budget.reserve(0.07)
        except BudgetSpent:
            return False
        cost = 0.07 if number % 2 else 0.03
        with lock:
            costs.append(cost)
        budget.settle(reserved, cost)
        return True

    with ThreadPoolExecutor(16) as pool:
        asked = list(pool.map(ask, range(200)))
    assert not all(asked)
    assert 0.9 < sum(costs) <= 1.0


def test_an_unknown_cost_counts_as_all_that_was_put_by() -> None:
    budget = Budget(1.0)
    budget.settle(budget.reserve(0.8), None)
    assert budget.spent is None
    with pytest.raises(BudgetSpent):
        budget.reserve(0.3)


def test_a_task_has_a_limit_of_its_own_within_the_runs(tmp_path: Path) -> None:
    run, question = Budget(1.0), (Message(role="user", content="?"),)
    task = a_session(a_ledger(tmp_path, "one", run, limit=0.3), cost=0.1, most=0.14)
    task.spend(Usage(cost=0.1))
    task.ask(question)
    with pytest.raises(
        OutOfMoney, match=r"The task's budget of 0\.3 USD is not enough: .*; raise --max-cost-per-task\."
    ):
        task.ask(question)
    assert run.spent == task.usage.cost == pytest.approx(0.2)
    other = a_session(a_ledger(tmp_path, "two", run), cost=0.1, most=0.95)
    with pytest.raises(BudgetSpent):
        other.ask(question)


def a_session(ledger: TaskLedger, *, cost: float, most: float) -> ModelSession:
    """Of a model whose replies cost so much, and could cost that much and a little for the prompt."""
    sampling = Sampling(temperature=0.0, seed=0, max_tokens=int(most * 1e6 / PRICE.completion), seconds=60)
    return ModelSession(Costly("", cost), PRICE, sampling, ledger, 1)


@pytest.mark.parametrize(
    ("text", "least"),
    [("plain words", 11), ("12345", 5), ("好" * 10, 30), ("🙂", 4), ("\udcff", 3)],
)
def test_every_byte_may_be_a_token(text: str, least: int) -> None:
    assert prompt_tokens((Message(role="user", content=text),)) >= least


def test_calls_and_functions_are_paid_for_too() -> None:
    plain = (Message(role="assistant", content="x"),)
    call = (Message(role="assistant", content="x", calls=(ToolCall(name="f", arguments="a" * 500),)),)
    tools = (Tool(function=ToolFunction(name="f" * 300, description="", parameters={})),)
    assert prompt_tokens(call) - prompt_tokens(plain) > 500
    assert prompt_tokens(plain, tools) - prompt_tokens(plain) > 300


def test_the_most_is_the_dearest_prompt_and_the_longest_reply() -> None:
    question = Request(messages=(Message(role="user", content="x" * 1000),), max_tokens=100)
    assert worst_case_cost(question, PRICE) == pytest.approx((1032 * 1.0 + 100 * 10.0) / 1e6)
    known = price("anthropic/claude-opus-4", None)
    assert known is not None
    # To put a prompt into the cache is dearer there.
    assert worst_case_cost(question, known) == pytest.approx(known.cost(1032, 100, cache_write=1032))
    assert worst_case_cost(question, known) > known.cost(1032, 100)
    assert worst_case_cost(question, None) == 0.0


@pytest.mark.real
@pytest.mark.parametrize(
    "text", ["Add two numbers. " * 20, "7 1 3 9 " * 50, "数字を足す。" * 20, "🙂🚀" * 30, "\t}{ \n" * 40]
)
def test_a_real_tokenizer_never_counts_more(text: str) -> None:
    weights()
    messages = (Message(role="system", content="Be brief."), Message(role="user", content=text))
    model = local.make(ModelContext(options=ModelSettings(cache=paths.cache())))
    said = model.complete(Request(messages=messages, max_tokens=1))
    assert 0 < said.usage.prompt_tokens <= prompt_tokens(messages)


def test_what_is_put_by_is_enough_for_arguments_that_are_sent_within_json() -> None:
    call = ToolCall(name="", arguments='{"é": "' + 'é"\n' * 100, id="1")
    messages = (Message(role="assistant", content="", calls=(call,)),)
    sent: Any = wire.body(Request(messages=messages), "m-1", {}, ())
    function = sent["messages"][0]["tool_calls"][0]["function"]
    assert prompt_tokens(messages) >= len(function["name"] + function["arguments"])


BLANK = Attempt(number=1, round=1, model="m", edit_format="whole", seed=0, temperature=0.0)


def answered(cost: float | None) -> bytes:
    return line("reply", reply={"text": "", "usage": {"cost": cost}})


ASKED = line("request", reserved=0.5)
FAILED = line("failed", reason="it is down")


def read(*lines: bytes) -> list[Event]:
    return list(journal.read(b"".join(lines)))


@pytest.mark.parametrize(
    ("lines", "spent"),
    [
        ([ASKED, answered(0.1), ASKED, answered(0.2)], 0.3),
        ([ASKED, answered(None)], 0.5),
        ([ASKED, FAILED, ASKED, answered(0.1)], 0.1),
        ([ASKED, line("lost", cost=0.5), answered(0.1)], 0.6),
        # A process that was killed while it waited, and what it did when it was started again.
        ([ASKED, line("attempt_started", attempt=1), ASKED, answered(0.1)], 0.6),
        ([ASKED], 0.5),
        ([line("spent", usage={"cost": 0.25}), ASKED, line("spent", usage={"cost": 0.5}), answered(0.1)], 0.85),
        ([line("spent", usage={"cost": None})], math.inf),
        ([line("request"), answered(0.1), line("attempt_ended", attempt=1, result=attempt_record(BLANK))], 0.1),
        # Asked without a price.
        ([line("request", reserved=None), answered(None)], math.inf),
        ([line("request", reserved=None)], math.inf),
        ([line("request", reserved=None), line("lost", cost=None), answered(0.1)], math.inf),
        (
            [line("request", reserved=None), answered(0.1), line("request", reserved=None), FAILED],
            0.1,
        ),
        # An agent that asks on its own: killed at its work, and killed when it had said what that cost.
        ([line("attempt_started", attempt=1, spends=True)], math.inf),
        ([line("attempt_started", attempt=1, spends=True), line("spent", attempt=1, call=0, usage={"cost": 0.3})], 0.3),
    ],
)
def test_a_journal_knows_what_may_have_been_spent(lines: list[bytes], spent: float) -> None:
    assert committed(read(*lines)) == pytest.approx(spent)


def test_a_task_out_of_money_for_replies_that_did_not_arrive_is_not_measured() -> None:
    killed = read(ASKED, answered(0.1), ASKED)
    with pytest.raises(BudgetSpent, match=r"0\.6000 USD spent, 0\.5000 of it for replies that did not arrive"):
        task_budget(1.0, killed).check(0.5)
    task_budget(1.1, killed).check(0.5)
    with pytest.raises(OutOfMoney):
        task_budget(1.0, read(ASKED, answered(0.6))).check(0.5)
    with pytest.raises(OutOfMoney):
        task_budget(1.0, [*killed, *read(ASKED, answered(0.5))]).check(0.5)


def test_what_a_lost_worker_had_asked_may_be_billed_and_the_sum_stays_known(tmp_path: Path) -> None:
    stop, budget = Stop(), Budget(None)
    turns = FairLimiter(1, stop)
    driver = DriverService(Run(tmp_path, "r"), budget, turns, stop)
    number = driver.reserve("t", b"", 0.01)
    driver.lost("t")
    assert budget.shown() == "0.0100 USD (0.0100 of it perhaps not billed)"
    # Its turn is free again, and what it says later changes nothing.
    turns.end(turns.begin())
    driver.settle(number, "t", b"", 0.5)
    assert budget.spent == 0.01


def test_a_task_that_loses_a_reply_now_is_not_measured_either() -> None:
    found = task_budget(1.0, [])
    found.add(0.1)
    found.lose(0.5)
    with pytest.raises(BudgetSpent):
        found.check(0.5)
    # An agent that asks on its own, and was killed.
    with pytest.raises(BudgetSpent, match="not known"):
        task_budget(1.0, read(line("attempt_started", attempt=1, spends=True))).check()


class Costly:
    """Answers what it is given, at a price."""

    name = "costly"

    def __init__(self, said: str, cost: float) -> None:
        self._reply = Reply(text=said, usage=Usage(calls=1, cost=cost))

    def complete(self, request: Request) -> Reply:
        return self._reply


class Spender:
    """Asks nobody through us, and says what it spent."""

    def __init__(self, *costs: float | None, fails: bool = False) -> None:
        self._left = list(costs)
        self._fails = fails

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        spent = Usage(calls=1, prompt_tokens=1000, completion_tokens=100, cost=self._left.pop(0))
        if self._fails:
            model.spend(spent)
            raise ModelError("The provider is down.")
        workspace.write(task.editable[0], WRONG.encode())
        return AgentResult(edit_outcome=True, spent=spent)


def spending(
    folder: Path, sandbox: Sandbox, agent: Spender, budget: Budget, *, limit: float | None = None, known: bool = True
) -> tuple[Prediction, Run]:
    benchmark = Exercism(write_exercise(folder / "bench"), "here", 1)
    (task,) = benchmark.tasks()
    rung = Rung(
        name="someone",
        model=Costly("", 0.0),
        agent=agent,
        edit_format="",
        price=PRICE if known else None,
        options=HarnessOptions().of(ModelChoice(name="someone")),
        spends=True,
    )
    ladder = Ladder(rungs=(rung,), tries=3, seconds=60, name="x", max_cost=limit)
    check = VisibleCheck(benchmark, task, sandbox, verdict_cache.Verdicts(folder / "cache"))
    return solve(task, ladder, check, a_ledger(folder, task.instance_id, budget, limit)), Run(folder, "r")


@pytest.mark.real
def test_what_an_agent_spends_on_its_own_is_counted_between_attempts(tmp_path: Path, bwrap: Sandbox) -> None:
    budget = Budget(0.25)
    prediction, run = spending(tmp_path, bwrap, Spender(0.1, 0.2), budget)
    assert [attempt.usage.cost for attempt in prediction.attempts] == [0.1, 0.2, 0.0]
    assert "budget of 0.25 USD is not enough" in prediction.not_measured
    assert budget.spent == committed_in(run) == run.spent().cost == pytest.approx(0.3)
    assert run.spent().prompt_tokens == 2000


@pytest.mark.real
def test_what_was_spent_before_an_agent_failed_is_not_lost(tmp_path: Path, bwrap: Sandbox) -> None:
    budget = Budget(None)
    prediction, run = spending(tmp_path, bwrap, Spender(0.1, 0.1, 0.1, fails=True), budget)
    assert "The provider is down." in prediction.not_measured
    assert budget.spent == run.spent().cost == pytest.approx(0.3)


@pytest.mark.real
def test_an_agent_that_knows_only_its_tokens_is_charged_their_price(tmp_path: Path, bwrap: Sandbox) -> None:
    prediction, _ = spending(tmp_path, bwrap, Spender(None, None, None), Budget(1.0))
    assert [attempt.usage.cost for attempt in prediction.attempts] == [pytest.approx(0.002)] * 3


@pytest.mark.real
def test_a_limit_cannot_be_kept_for_an_agent_that_does_not_say(tmp_path: Path, bwrap: Sandbox) -> None:
    prediction, run = spending(tmp_path, bwrap, Spender(None), Budget(1.0), known=False)
    assert "what was spent before is not known" in prediction.not_measured
    assert len(prediction.attempts) == 2
    # Nor by whoever goes on with the run.
    with pytest.raises(BudgetSpent, match="what was spent before is not known"):
        Budget(1.0, committed_in(run)).check()


@pytest.mark.real
def test_the_tasks_own_limit_ends_its_ladder_and_what_it_has_counts(tmp_path: Path, bwrap: Sandbox) -> None:
    prediction, _ = spending(tmp_path, bwrap, Spender(0.1, 0.2), Budget(None), limit=0.25)
    assert [attempt.usage.cost for attempt in prediction.attempts] == [0.1, 0.2]
    assert prediction.not_measured == ""


FILE = re.compile(r"sum_up\d*\.py")
IN, OUT = 3.0, 20.0


class Till:
    """A server's answers, each as dear as it can be, with what all of them cost; every fifth is torn."""

    def __init__(self, content: str = RIGHT) -> None:
        self._content = content
        self.took = 0.0
        self.whole = self._sent = 0
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Answer:
        texts = [message["content"] for message in asked.body["messages"]]
        usage = {
            "prompt_tokens": sum(len(text.encode()) for text in texts),
            "completion_tokens": asked.body["max_tokens"],
        }
        found = FILE.search(texts[-1])
        assert found
        answer = reply(file(self._content, found[0]), usage=usage)
        with self._lock:
            self.took += (usage["prompt_tokens"] * IN + usage["completion_tokens"] * OUT) / 1e6
            self._sent += 1
            is_torn = self._sent % 5 == 0
            self.whole += not is_torn
        return Answer(content=answer.content, cut=20) if is_torn else answer


def harness(run: Program, folder: Path, server: ChatServer, *flags: object) -> Any:
    return run(
        *("harness.py", "-b", folder, "-m", "m-1:whole", "--run", "money", "--sandbox", "bwrap"),
        *("--api-base", server.url, "--price", f"{IN}/{OUT}", "--max-tokens", 50, *flags),
    )


@pytest.mark.real
@pytest.mark.usefixtures("bwrap")
def test_ten_workers_never_spend_more_than_the_budget(run: Program, home: Path, tmp_path: Path) -> None:
    for number in range(40):
        write_exercise(tmp_path / "bench", f"sum-up{number}")
    till, folder = Till(), home / "predictions/money"

    def go(limit: float) -> tuple[int, float, int]:
        done = harness(run, tmp_path / "bench", server, "--jobs", 10, "--max-cost", limit)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, till.took, len(list(folder.glob("aider_*.json")))

    with ChatServer([till]) as server:
        code, took, finished = go(0.10)
        assert code == 1
        assert 0.07 < took <= 0.10
        assert 0 < finished == till.whole < 40
        assert go(0.10) == (1, took, finished)
        code, took, finished = go(1.0)
    assert (code, finished) == (0, 40)
    assert till.whole == 40
    assert took > 0.10


@pytest.mark.real
@pytest.mark.usefixtures("bwrap")
def test_a_task_ends_when_its_own_money_does(run: Program, home: Path, tmp_path: Path) -> None:
    folder = write_exercise(tmp_path / "bench")
    # 50 tokens of a reply are 0.05 USD.
    flags = ("--tries", 3, "--turns", 1, "--price", "0/1000", "--max-cost-per-task")
    with ChatServer([Till(WRONG)]) as server:
        poor = harness(run, folder, server, *flags, 0.0001)
        assert poor.returncode == 1
        assert "raise --max-cost-per-task" in poor.stdout
        assert server.requests == []
        done = harness(run, folder, server, *flags, 0.125)
    assert done.returncode == 0, done.stdout
    record = json.loads((home / "predictions/money/aider_python_sum_up.json").read_text())
    assert (len(server.requests), len(record["all_results"]), record["plausible"]) == (2, 2, False)
    assert "-    pass" in record["model_patch"]


@pytest.mark.real
@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("flag", ["--max-cost", "--max-cost-per-task"])
def test_a_limit_needs_a_price(run: Program, tmp_path: Path, flag: str) -> None:
    with ChatServer() as server:
        done = run(
            "harness.py", "-b", write_exercise(tmp_path / "bench"), "-m", "m-1", "--api-base", server.url, flag, 1
        )
    assert done.returncode == 2
    assert f"{flag} needs a price" in done.stderr
    assert server.requests == []


def test_a_journal_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert committed(Journal(tmp_path / "none.jsonl").events()) == 0.0
