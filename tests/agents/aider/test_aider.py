"""The agent aider without aider: models' names, where it is installed, what is made of its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from retrial.agents import aider
from retrial.agents.aider import driver_report as aider_report
from retrial.agents.aider import install
from retrial.agents.aider.install import Installation
from retrial.agents.isolation import AgentCommand, AgentExit
from retrial.attempts import AgentResult, Facts
from retrial.chat import Usage
from retrial.errors import ModelError, NotMeasured, UsageError
from retrial.options import HarnessOptions
from retrial.patches.workspace import Folder
from retrial.predict.metering.model_session import ModelSession
from retrial.protocols import AgentContext, Workspace, WorkspaceCheck
from tests.support.aider_parts import a_chat, a_task, verdict

KEYS = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "GOOGLE_API_KEY": "sk-3", "TOGETHER_API_KEY": "sk-4"}


@pytest.mark.parametrize(
    ("name", "model", "variables"),
    [
        ("gpt-5", "openai/gpt-5", {"OPENAI_API_KEY": "sk-1"}),
        ("anthropic/claude-opus-4", "anthropic/claude-opus-4", {"ANTHROPIC_API_KEY": "sk-2"}),
        ("gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro", {"GEMINI_API_KEY": "sk-3"}),
        ("together/org/name", "together_ai/org/name", {"TOGETHER_API_KEY": "sk-4"}),
        ("ollama/qwen:7b", "ollama_chat/qwen:7b", {"OLLAMA_API_BASE": "http://127.0.0.1:11434"}),
    ],
)
def test_a_name_leads_to_its_provider_with_that_key_alone(name: str, model: str, variables: dict[str, str]) -> None:
    route = aider_report.find_route(name, "", KEYS)
    assert (route.model, route.variables) == (model, variables)


@pytest.mark.parametrize("name", ["gpt-test", "anthropic/gpt-test", "vllm/gpt-test", "llamacpp/gpt-test"])
def test_at_another_address_everything_speaks_openais_protocol(name: str) -> None:
    route = aider_report.find_route(name, "http://127.0.0.1:8000/v1", {})
    assert route.model == "openai/gpt-test"
    assert route.variables == {"OPENAI_API_BASE": "http://127.0.0.1:8000/v1", "OPENAI_API_KEY": "none"}


def test_an_address_in_the_environment_is_one_too() -> None:
    route = aider_report.find_route(
        "gpt-test", "", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "sk-1"}
    )
    assert route.variables == {"OPENAI_API_BASE": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "sk-1"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "needs a model"), ("local", "asks its model itself"), ("replay/x.jsonl", "itself"), ("gpt-5", "a key")],
)
def test_a_model_that_aider_cannot_ask_is_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        aider_report.find_route(name, "", {})


@pytest.mark.parametrize("edit_format", ["whole-func", "diff-func"])
def test_formats_that_aider_does_not_have_are_refused(edit_format: str) -> None:
    with pytest.raises(UsageError, match="aider has no edit format"):
        aider.make(AgentContext(options=HarnessOptions(), model="gpt-5", edit_format=edit_format))


def test_a_python_that_is_not_there_or_has_no_aider_is_refused() -> None:
    with pytest.raises(UsageError, match="names no program"):
        install.given("/nowhere/python")
    for python in (sys.executable, "true"):
        with pytest.raises(UsageError, match="has no aider"):
            install.given(python)


def test_an_environment_is_shown_under_the_name_that_leads_there_too(tmp_path: Path) -> None:
    (tmp_path / "real" / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    about = {"aider": "1", "python": "3", "executable": "python", "folders": [str(tmp_path / "link")]}
    program = tmp_path / "real" / "bin" / "python"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(about)}'\n")
    program.chmod(0o755)
    assert install.given(str(tmp_path / "link" / "bin" / "python")).shown == (tmp_path / "link", tmp_path / "real")


CALL = {
    "prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 2, "cache_write_tokens": 0, "reasoning_tokens": 1,
    "cost": 0.5, "seconds": 2.0,
}  # fmt: skip
WHOLE = {
    "ended": True, "waiting": False, "failure": None, "retries": 1, "calls": [CALL, CALL],
    "edit_format": "diff", "edit_outcome": True, "lint_outcome": None,
    "reflections": 1, "malformed": 1, "exhausted": 0, "user_asks": 2,
}  # fmt: skip


def files(report: object, chat: object = ()) -> dict[str, bytes]:
    return {"report.json": json.dumps(report).encode(), "chat.json": json.dumps(chat).encode()}


def test_what_all_calls_took_is_summed_up() -> None:
    report = aider_report.read(files(WHOLE))
    assert report is not None
    assert report.effort.spent == Usage(
        calls=2, prompt_tokens=18, completion_tokens=8, cached_tokens=4, reasoning_tokens=2, cost=1.0, seconds=4.0,
        retries=1,
    )  # fmt: skip


def test_one_call_of_unknown_cost_makes_the_sum_unknown() -> None:
    report = aider_report.read(files({**WHOLE, "calls": [CALL, {**CALL, "cost": None}]}))
    assert report is not None and report.effort.spent.cost is None


@pytest.mark.parametrize(
    "number",
    [{"cost": float("inf")}, {"cost": float("nan")}, {"cost": -1}, {"prompt_tokens": 10**30}, {"cached_tokens": -1}],
)
def test_one_impossible_number_makes_all_that_was_taken_unknown(number: Mapping[str, object]) -> None:
    report = aider_report.read(files({**WHOLE, "calls": [CALL, {**CALL, **number}]}))
    assert report is not None
    # Without tokens, so that no price can make too small a sum of them.
    assert report.effort.spent == Usage(calls=2, cost=None)


@pytest.mark.parametrize(
    "left", [{}, {"report.json": b"{"}, files([]), files({}), files({**WHOLE, "calls": [{}]}), files(WHOLE, [1])]
)
def test_a_report_that_is_not_whole_is_none(left: Mapping[str, bytes]) -> None:
    assert aider_report.read(left) is None


@pytest.mark.parametrize(
    ("status", "reached", "text", "row"),
    [
        (401, True, "", "key"),
        (500, False, "", "connection"),
        (500, True, "", "server"),
        (429, True, "insufficient_quota", "quota"),
    ],
)
def test_a_failure_is_told_as_our_own_models_are(status: int, reached: bool, text: str, row: str) -> None:
    failure = {"status": status, "reached": reached, "text": text, "tries": 3}
    report = aider_report.read(files({**WHOLE, "ended": False, "failure": failure}))
    assert report is not None and report.failure is not None
    assert (report.failure.kind, report.tries) == (row, 3)


class Told:
    """A cell in which aider has been already; a cell is any object that runs an errand."""

    def __init__(self, report: object, *, timed_out: bool = False) -> None:
        code = None if timed_out else 0
        self._ran = AgentExit(exit_code=code, output="Traceback\nOops.\n", timed_out=timed_out, results=files(report))

    def check(self) -> None: ...

    def describe(self) -> Facts:
        return {"isolated": True, "cell": "told"}

    def run(
        self, errand: AgentCommand, workspace: Workspace, check: WorkspaceCheck, left: Callable[[], float]
    ) -> AgentExit:
        return self._ran


def after(cell: Told, folder: Path, price: str = "") -> tuple[ModelSession, Callable[[], AgentResult]]:
    """The chat that it spends from, and how to have what the agent makes of the cell's report."""
    agent = aider.AiderAgent(
        installation=Installation(python="python", version="0", python_version="3"),
        cell=cell,
        route=aider_report.find_route("gpt-test", "http://127.0.0.1:1/v1", {"OPENAI_API_KEY": "sk-secret-1"}),
        edit_format="whole",
        options=HarnessOptions(price=price),
    )
    task, metered, workspace = a_task(folder), a_chat(folder), Folder(folder, {})
    return metered, lambda: agent.solve(task, workspace, metered, lambda: verdict(workspace))


OPEN = {**WHOLE, "ended": False, "waiting": True}
REFUSED = {"status": 401, "reached": True, "text": "bad key sk-secret-1", "tries": 1}
LONG = {
    "status": 400,
    "reached": True,
    "text": "the request exceeds the available context size",
    "tries": 1,
}


def test_when_time_is_over_what_it_has_counts(tmp_path: Path) -> None:
    effort = after(Told(OPEN, timed_out=True), tmp_path)[1]()
    assert (effort.edit_outcome, effort.notes, effort.spent.calls) == (True, ("the attempt timed out",), 2)


def test_when_time_is_over_before_the_first_answer_the_provider_was_too_slow(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="did not answer in time"):
        after(Told({**OPEN, "calls": []}, timed_out=True), tmp_path)[1]()


def test_a_broken_provider_is_not_measured_and_what_was_paid_is_kept(tmp_path: Path) -> None:
    metered, solve = after(Told({**OPEN, "failure": REFUSED}), tmp_path)
    with pytest.raises(ModelError, match=r"did not accept the key .*bad key \*\*\*.* in OPENAI_API_KEY"):
        solve()
    assert (metered.usage.calls, metered.usage.cost) == (2, 1.0)


def test_a_context_that_the_provider_words_its_own_way_is_exhausted_too(tmp_path: Path) -> None:
    effort = after(Told({**OPEN, "waiting": False, "failure": LONG}), tmp_path)[1]()
    assert effort.exhausted == 1


@pytest.mark.parametrize("report", [None, OPEN, {**OPEN, "waiting": False, "calls": []}])
def test_an_aider_that_breaks_down_before_an_answer_is_not_measured(report: object, tmp_path: Path) -> None:
    with pytest.raises(NotMeasured, match=r"Oops\."):
        after(Told(report), tmp_path)[1]()


def test_an_aider_that_breaks_down_over_an_answer_is_measured_and_noted(tmp_path: Path) -> None:
    effort = after(Told({**OPEN, "waiting": False, "edit_outcome": False}), tmp_path)[1]()
    assert (effort.edit_outcome, effort.notes) == (False, ("aider broke down: Oops.",))
    assert effort.error == "aider broke down: Oops."


def test_a_price_that_is_given_wins(tmp_path: Path) -> None:
    assert after(Told(WHOLE), tmp_path)[1]().spent.cost == 1.0
    assert after(Told(WHOLE), tmp_path, price="1/2")[1]().spent.cost is None  # the ladder will price it
