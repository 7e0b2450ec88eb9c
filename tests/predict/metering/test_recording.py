"""What a run's journals say was asked and replied, and where a question of now parts from one of then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrial.attempts import Attempt
from retrial.chat import CallId, Message, Reply, Request, Tool, ToolCall, ToolFunction, Usage
from retrial.cli.arguments import parse
from retrial.errors import ModelError, NotRecorded, OutOfMoney, OutOfTime, UsageError
from retrial.models.replay import make
from retrial.options import HarnessOptions, ModelSettings
from retrial.predict.metering.recording import RecordedModel, Recording
from retrial.protocols import ModelContext
from retrial.store.attempt_log import first_difference, question
from retrial.store.journal import Journal
from retrial.store.json_io import to_fields
from retrial.store.records import attempt_record
from retrial.store.runs import Run
from retrial.types import Outcome, Verdict
from tests.support.journals import append

SYSTEM = Message(role="system", content="Reply with files.")
USER = Message(role="user", content="Write add.\n\nIn one line.\nFast.")
CALL = ToolCall(name="edit", arguments="{}", id="c1")
TOOL = Tool(function=ToolFunction(name="edit", description="", parameters={"type": "object"}))
ASKED = Request(messages=(SYSTEM, USER), tools=(TOOL,))
REPLY = Reply(
    text="Here.",
    calls=(CALL,),
    finish="length",
    usage=Usage(calls=1, prompt_tokens=7, cost=0.25, seconds=1.5, retries=2),
    model="m-1",
    fingerprint="fp",
    left_out=("seed",),
)
IDENTITY = {
    "benchmark": "demo-python",
    "agent": "edit",
    "model_name_or_path": "edit--one--two",
    "models": ["one:whole", "ollama/two:7b:diff"],
    "model_options": [{}, {"temperature": 1.0}],
    "tries": 3,
    "turns": 5,
    "reflections": 0,
    "seed": 4,
    "temperature": 0.5,
    "max_tokens": 99,
    "editor_files": "hidden",
}


@pytest.fixture
def run(home: Path) -> Run:
    found = Run(home, "old")
    limits = {"timeout_seconds": 30.0, "test_timeout_seconds": None}
    found.write_config(
        {"program": "harness.py", "identity": IDENTITY, "limits": limits, "selected": ["one", "three", "two"]}
    )
    return found


@pytest.fixture
def journal(run: Run) -> Journal:
    return run.journal("one")


def begin(journal: Journal, number: int = 1) -> None:
    append(journal, "attempt_started", attempt=number, model="one")


def ask(journal: Journal, request: Request = ASKED, reply: Reply | None = REPLY) -> None:
    append(journal, "request", request=request)
    if reply is not None:
        append(journal, "reply", reply=reply)


def end(journal: Journal, number: int = 1, error: str = "") -> None:
    attempt = Attempt(number=number, round=1, model="one", edit_format="whole", seed=0, temperature=0, error=error)
    append(journal, "attempt_ended", attempt=number, result=attempt_record(attempt))


def at(request: Request = ASKED, *, task: str = "one", attempt: int = 1, call: int = 1) -> Request:
    return replace(request, place=CallId(instance_id=task, attempt=attempt, call=call), timeout=1.0)


def replied(run: Run, request: Request) -> Reply:
    return RecordedModel("one", Recording(run)).complete(request)


def saying(text: str) -> Reply:
    return replace(REPLY, text=text)


def test_a_reply_comes_back_whole_and_says_that_it_is_recorded(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    assert replied(run, at()) == replace(REPLY, recorded=True)


def test_each_place_has_its_own_reply(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal, reply=saying("1.1"))
    ask(journal, reply=saying("1.2"))
    end(journal)
    begin(journal, 2)
    ask(journal, reply=saying("2.1"))
    found = [replied(run, at(attempt=attempt, call=call)).text for attempt, call in ((2, 1), (1, 2), (1, 1))]
    assert found == ["2.1", "1.2", "1.1"]


def test_of_a_task_that_was_begun_again_the_last_go_counts(run: Run, journal: Journal) -> None:
    for text in ("old", "new"):
        begin(journal)
        ask(journal, reply=saying(text))
        end(journal)
    assert replied(run, at()).text == "new"


def test_a_go_that_was_killed_leaves_it_to_the_one_before(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal, reply=saying("whole"))
    end(journal)
    begin(journal)
    ask(journal, reply=None)
    assert replied(run, at()).text == "whole"


def test_an_error_of_then_is_the_error_of_now(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    end(journal)
    begin(journal)
    ask(journal, reply=None)
    end(journal, error="the provider is on fire")
    begin(journal, 2)
    with pytest.raises(ModelError, match=r"^the provider is on fire$") as caught:
        replied(run, at())
    assert not isinstance(caught.value, NotRecorded), "the ladder went on then"


def test_an_error_that_ended_the_ladder_then_ends_it_now(run: Run, journal: Journal) -> None:
    begin(journal)
    end(journal, error="The budget is not enough.")
    begin(journal)
    end(journal, error="The budget is not enough yet.")
    with pytest.raises(NotRecorded, match=r"^The budget is not enough yet\.$"):
        replied(run, at())


def test_a_journal_of_before_there_were_calls_can_be_played(run: Run, journal: Journal) -> None:
    begin(journal)
    then = {
        **to_fields(question(ASKED)),
        "messages": [{"role": each.role, "content": each.content} for each in ASKED.messages],
    }
    append(journal, "request", request=then)
    append(journal, "reply", reply={"text": "old", "calls": [], "finish": "stop", "usage": {"cost": 0.1}})
    assert replied(run, at()).text == "old"


def test_an_error_between_two_questions_is_met_at_the_next(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    end(journal, error="the sandbox was lost")
    with pytest.raises(ModelError, match=r"^the sandbox was lost$"):
        replied(run, at(call=2))


@pytest.mark.parametrize("kind", [OutOfTime, OutOfMoney])
def test_where_time_or_money_was_over_it_is_over_again(
    run: Run, journal: Journal, kind: type[OutOfTime | OutOfMoney]
) -> None:
    begin(journal)
    ask(journal)
    append(journal, "over", kind=kind.__name__, reason="it is over")
    with pytest.raises(kind, match=r"^it is over$"):
        replied(run, at(call=2))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (at(task="two"), "Task two, attempt 1, call 1: run 'old' was asked nothing, or its journal ends"),
        (at(attempt=2), "Task one, attempt 2, call 1: run 'old' was asked nothing, or its journal ends"),
        (at(call=2), "Task one, attempt 1, call 2: run 'old' was asked nothing more: the attempt had ended"),
    ],
)
def test_where_nothing_was_asked_there_is_no_reply(run: Run, journal: Journal, request_: Request, words: str) -> None:
    begin(journal)
    ask(journal)
    end(journal)
    with pytest.raises(NotRecorded) as caught:
        replied(run, request_)
    assert words in str(caught.value)


def test_a_reply_that_was_torn_out_is_said_to_be(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal, reply=None)
    end(journal)
    with pytest.raises(NotRecorded, match="has lost the reply: its journal is torn"):
        replied(run, at())


def test_a_line_after_a_torn_one_is_not_lost_with_it(run: Run, journal: Journal) -> None:
    begin(journal)
    path = run.journal_paths()[0]
    path.write_bytes(path.read_bytes() + b'{"event": "requ')
    begin(journal)
    ask(journal)
    assert replied(run, at()) == replace(REPLY, recorded=True)


def test_what_is_not_part_of_a_question_may_differ(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal, replace(ASKED, timeout=17.0))
    assert replied(run, at()).text == "Here."


LONG = "x" * 200


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (
            {"messages": (SYSTEM, replace(USER, content="Write add.\n\nIn two lines.\nFast."))},
            "message 2 (user), line 3: 'In one line.' then, 'In two lines.' now",
        ),
        ({"messages": (SYSTEM, replace(USER, content="Write add."))}, "message 2 (user), line 2: '' then, nothing now"),
        (
            {"messages": (replace(SYSTEM, content="Reply."), USER)},
            "message 1 (system): 'Reply with files.' then, 'Reply.' now",
        ),
        ({"messages": (SYSTEM,)}, "message 2: 'user: Write add.' then, nothing now"),
        (
            {"messages": (SYSTEM, USER, Message(role="user", content="More."))},
            "message 3: nothing then, 'user: More.' now",
        ),
        ({"messages": (SYSTEM, replace(USER, role="tool"))}, "message 2, role: 'user' then, 'tool' now"),
        (
            {"messages": (SYSTEM, replace(USER, calls=(CALL,)))},
            "message 2 (user), calls, line 1: '[]' then, '[' now",
        ),
        ({"messages": (SYSTEM, replace(USER, call_id="c9"))}, "message 2 (user), call_id: '' then, 'c9' now"),
        ({"tools": ()}, "tools, line 1: '[' then, '[]' now"),
        ({"temperature": 0.7}, "temperature: '0.0' then, '0.7' now"),
        ({"seed": 1}, "seed: '0' then, '1' now"),
        ({"max_tokens": 5}, "max_tokens: '8192' then, '5' now"),
    ],
)
def test_the_first_difference_is_shown(now: Mapping[str, Any], words: str) -> None:
    assert first_difference(question(ASKED), question(replace(ASKED, **now))) == words


def test_of_a_long_line_the_part_that_differs_is_shown() -> None:
    then, now = (Request(messages=(Message(role="user", content=LONG + end),)) for end in ("a" * 99, "b"))
    different = first_difference(question(then), question(now))
    assert different == f"message 1 (user): '…{'x' * 20}{'a' * 40}…' then, '…{'x' * 20}b' now"


def test_the_same_question_has_no_difference() -> None:
    assert first_difference(question(ASKED), question(at())) == ""


def test_another_question_is_refused_with_its_place_and_the_difference(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    with pytest.raises(NotRecorded) as caught:
        replied(run, at(replace(ASKED, seed=1)))
    expected = "Task one, attempt 1, call 1: run 'old' was asked something else: seed: '0' then, '1' now."
    assert str(caught.value) == expected


def test_the_last_verdict_on_a_patch_counts(run: Run, journal: Journal) -> None:
    for outcome in (Outcome.TIMED_OUT, Outcome.TESTS_FAILED):
        append(journal, "check", key="k", verdict=Verdict(outcome=outcome, telling="say this"))
    append(journal, "check", key="k")
    assert Recording(run).verdicts("one") == {"k": Verdict(outcome=Outcome.TESTS_FAILED, telling="say this")}


def options(*argv: str) -> HarnessOptions:
    return parse(HarnessOptions, argv, "")[0]


def test_what_is_not_given_is_as_the_run_had_it(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    found = options("-m", "replay:old", "--turns", "2")
    assert (found.turns, found.tries, found.reflections, found.seed) == (2, 3, 0, 4)
    assert (found.temperature, found.max_tokens, found.timeout_seconds) == (0.5, 99, 30.0)
    assert (found.benchmark, found.agent, found.name) == ("demo-python", "edit", "edit--one--two")
    assert found.hide_editor_files
    assert found.task == ("one",), "nothing was asked about the others"
    assert options("-m", "gpt-5").turns == 2


def test_its_models_are_the_recorded_ones_and_cost_nothing(run: Run) -> None:
    first, second = Recording(run).choices
    assert (first.name, second.name) == ("one:whole", "ollama/two:7b:diff")
    assert dict(first.overrides) == {"price": "0/0"}
    assert dict(second.overrides) == {"price": "0/0", "temperature": 1.0}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("-m", "replay:nowhere"), "There is no run and no file 'nowhere'"),
        (("-m", "replay:"), "needs a run of harness.py"),
        (("-m", "replay:old", "-m", "gpt-5"), "stands alone"),
        (("-m", "replay:old"), "has no replies in its journals"),
    ],
)
def test_what_cannot_be_played_is_refused(run: Run, argv: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options(*argv)


def test_a_format_cannot_be_given_to_recorded_models(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal)
    with pytest.raises(UsageError, match="its models bring theirs"):
        options("-m", "replay:old", "--edit-format", "diff")


def test_a_run_made_from_a_file_has_nothing_to_play(home: Path) -> None:
    Run(home, "file").write_config({"program": "report.py", "identity": {"benchmark": "demo"}})
    with pytest.raises(UsageError, match=r"not by harness\.py"):
        options("-m", "replay:file")


def test_nothing_of_a_run_that_is_played_again_is_spent(run: Run, journal: Journal) -> None:
    begin(journal)
    ask(journal, reply=replace(REPLY, recorded=True))
    assert run.spent() == Usage()
    ask(journal)
    assert run.spent().cost == 0.25


@pytest.mark.parametrize(
    "number", ['"cost": NaN', '"cost": Infinity', '"cost": 1e400', '"prompt_tokens": 1%s' % ("0" * 30)]
)
def test_a_recorded_number_that_cannot_be_is_refused_by_its_line(tmp_path: Path, number: str) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"text": "a"}\n{"text": "b", NUMBER}\n'.replace("NUMBER", number))
    with pytest.raises(UsageError, match=r"replies\.jsonl:2: '\w+' must be a number from 0 to "):
        make(ModelContext(options=ModelSettings(cache=tmp_path), name=str(file)))
