"""The optional `litellm` part: for real, with the Python of aider's environment, which brings that package."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrial import models
from retrial.errors import UsageError
from retrial.options import ModelSettings
from tests import parts
from tests.conftest import PROJECT
from tests.parts import require
from tests.support.servers import Asked, Behaviour, ChatServer, reply, status, torn

KEY = "sk-test-0123456789abcdef"
NOW = {"Retry-After": "0"}
LONG = "This model's maximum context length is 10 tokens."
THOUSAND = {"prompt_tokens": 1000, "completion_tokens": 100}

ASK = """
import json, sys
from pathlib import Path
from retrial import models
from retrial.chat import Message, Request
from retrial.errors import ModelError
from retrial.options import ModelSettings
from retrial.store.json_io import to_jsonl

request = Request(messages=(Message(role="user", content="Hello?"),), max_tokens=100, seed=7, timeout=60)
for case in json.load(sys.stdin):
    name, settings = "litellm/openai/gpt-4o", ModelSettings(cache=Path("nowhere"), **case)
    said = {"price": models.price_of(name, settings)}
    try:
        said["reply"] = models.open_model(name, settings).complete(request)
    except ModelError as error:
        said["error"] = str(error)
    sys.stdout.buffer.write(to_jsonl(said))
"""


@dataclass(slots=True, kw_only=True)
class Case:
    """What a server does, how the model is set, and what came of asking it."""

    server: list[Behaviour]
    settings: dict[str, object] = field(default_factory=dict)
    said: Any = None
    requests: list[Asked] = field(default_factory=list)


CASES = {
    "plain": Case(server=[reply("fine", usage=THOUSAND)], settings={"extra": {"top_p": 0.5}}),
    "priced": Case(server=[reply("fine", usage=THOUSAND)], settings={"price": [1000.0, 0.0]}),
    "trouble": Case(server=[status(429, "slow down", headers=NOW), torn(), reply("fine")]),
    "refused": Case(server=[status(400, "Unsupported parameter: 'seed'", param="seed"), reply("fine")]),
    "key": Case(server=[status(401, f"Incorrect API key provided: {KEY}")]),
    "unknown": Case(server=[status(404, "no such model")]),
    "long": Case(server=[status(400, LONG, code="context_length_exceeded")]),
}


def python() -> str:
    return parts.aider().python


@pytest.fixture(scope="module")
def asked() -> dict[str, Case]:
    """All cases, in one process of that Python: the package takes seconds to import."""
    with ExitStack() as stack:
        servers = [stack.enter_context(ChatServer(case.server)) for case in CASES.values()]
        settings = [
            {"api_base": server.url, **case.settings} for server, case in zip(servers, CASES.values(), strict=True)
        ]
        done = subprocess.run(
            [python(), "-c", ASK],
            input=json.dumps(settings),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "OPENAI_API_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (0, "")
    for case, server, line in zip(CASES.values(), servers, done.stdout.splitlines(), strict=True):
        case.said, case.requests = json.loads(line), server.requests
    return CASES


@pytest.mark.real
def test_it_asks_what_every_model_is_asked_and_knows_what_ours_does_not(asked: dict[str, Case]) -> None:
    case = asked["plain"]
    assert case.said["reply"]["text"] == "fine"
    assert case.said["reply"]["usage"]["cost"] == pytest.approx(0.0035)
    assert case.said["price"]["prompt"] == pytest.approx(2.5)
    (sent,) = case.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    wanted = {"model": "gpt-4o", "max_tokens": 100, "temperature": 0.0, "seed": 7, "top_p": 0.5}
    assert {name: sent.body[name] for name in wanted} == wanted


@pytest.mark.real
def test_a_price_that_is_given_wins_over_its_table(asked: dict[str, Case]) -> None:
    assert asked["priced"].said["reply"]["usage"]["cost"] == pytest.approx(1.0)


@pytest.mark.real
def test_retries_are_ours(asked: dict[str, Case]) -> None:
    said = asked["trouble"].said["reply"]
    assert (said["text"], said["usage"]["retries"], len(asked["trouble"].requests)) == ("fine", 2, 3)


@pytest.mark.real
def test_a_refused_parameter_is_left_out_and_that_is_said(asked: dict[str, Case]) -> None:
    said = asked["refused"].said["reply"]
    assert (said["text"], said["left_out"]) == ("fine", ["seed"])
    assert "seed" not in asked["refused"].requests[-1].body


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "words"), [("key", "check the key in OPENAI_API_KEY"), ("unknown", "does not know this model")]
)
def test_what_will_not_pass_is_one_sentence_without_the_key(asked: dict[str, Case], name: str, words: str) -> None:
    assert words in asked[name].said["error"]
    assert KEY not in asked[name].said["error"]
    assert len(asked[name].requests) == 1


@pytest.mark.real
def test_a_question_longer_than_the_context_is_an_empty_reply(asked: dict[str, Case]) -> None:
    said = asked["long"].said["reply"]
    assert (said["text"], said["finish"]) == ("", "length")


def test_without_the_package_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    require("no litellm", "it is installed here" if importlib.util.find_spec("litellm") else "")
    with pytest.raises(UsageError, match=r"'litellm/openai/gpt-4o' needs .* pip install -r requirements-litellm\.txt"):
        models.open_model("litellm/openai/gpt-4o", ModelSettings(cache=tmp_path))


def test_a_name_without_a_provider_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="litellm/PROVIDER/NAME"):
        models.open_model("litellm/gpt-4o", ModelSettings(cache=tmp_path))
