"""The `openai` part against a real server on a loopback port."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.chat import Json, Message, Reply, Request
from retrial.errors import BudgetSpent, ModelError, UsageError
from retrial.models import openai
from retrial.models.endpoints import Endpoint, resolve
from retrial.models.failures import mask, retry_after
from retrial.models.openai import OpenAIModel
from retrial.models.prices import Price
from retrial.models.retry import Patience
from retrial.options import ModelSettings
from retrial.protocols import ModelContext
from tests.support.controls import Losing
from tests.support.servers import Answer, Asked, Behaviour, ChatServer, json_answer, reply, stalled, status, torn

KEY = "sk-test-0123456789abcdef"
NOW = {"Retry-After": "0"}


def question(text: str = "Hello?", *, timeout: float = 20.0, seed: int = 7) -> Request:
    return Request(messages=(Message(role="user", content=text),), seed=seed, max_tokens=100, timeout=timeout)


@contextmanager
def asking(
    *behaviours: Behaviour, try_seconds: float | None = None, extra: Mapping[str, Json] | None = None
) -> Iterator[tuple[OpenAIModel, ChatServer]]:
    with ChatServer(behaviours) as server:
        endpoint = Endpoint(
            title="the test's server", base_url=server.url, model="m-1", key=KEY, key_name="OPENAI_API_KEY"
        )
        price = Price(prompt=1.0, completion=2.0)
        patience = Patience(base_delay=0.001, try_seconds=try_seconds)
        model = OpenAIModel(name="m-1", endpoint=endpoint, price=price, extra=extra, patience=patience)
        with closing(model):
            yield model, server


def served(model: str, fingerprint: str) -> Answer:
    content = json.loads(reply().content)
    return json_answer({**content, "model": model, "system_fingerprint": fingerprint})


def test_a_reply_has_text_usage_cost_and_time() -> None:
    with asking(reply("Hi there.")) as (model, server):
        said = model.complete(question())
    assert (said.text, said.finish, said.calls) == ("Hi there.", "stop", ())
    assert (said.usage.calls, said.usage.prompt_tokens, said.usage.completion_tokens) == (1, 10, 5)
    assert said.usage.cost == pytest.approx(20e-6)
    assert said.usage.seconds > 0
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "Hello?"}],
        "max_tokens": 100,
        "temperature": 0.0,
        "seed": 7,
    }


def test_tool_calls_arrive_whether_their_arguments_are_text_or_objects() -> None:
    calls = [{"function": {"name": "write", "arguments": '{"a": 1}'}}, {"function": {"name": "read", "arguments": {}}}]
    with asking(reply("", finish="tool_calls", tool_calls=calls)) as (model, _):
        said = model.complete(question())
    assert [(call.name, call.arguments) for call in said.calls] == [("write", '{"a": 1}'), ("read", "{}")]
    assert said.calls[0].id != said.calls[1].id


def test_a_reply_that_was_cut_at_max_tokens_says_so() -> None:
    with asking(reply("Once upon", finish="length")) as (model, _):
        assert model.complete(question()).finish == "length"


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("max_tokens", "length"),
        ("max_output_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("end_turn", "end_turn"),
    ],
)
def test_however_a_provider_words_it_an_end_is_told(said: str, finish: str) -> None:
    with asking(reply("Once upon", finish=said)) as (model, _):
        assert model.complete(question()).finish == finish


def test_a_model_that_only_thought_says_nothing() -> None:
    thought = reply("", finish="length", reasoning_content="Let me see …", content=None)
    parts = [{"type": "thinking", "text": "Hmm."}, {"type": "text", "text": "Yes."}, {"text": " No."}]
    with asking(thought, reply("", content=parts)) as (model, _):
        said = model.complete(question())
        assert (said.text, said.finish) == ("", "length")
        assert model.complete(question()).text == "Yes. No."


def test_a_refusal_is_what_the_model_says() -> None:
    with asking(reply("", content=None, refusal="I cannot help with that.")) as (model, _):
        assert model.complete(question()).text == "I cannot help with that."


def test_who_answered_is_read() -> None:
    with asking(served("m-1-2026-01-01", "fp_1")) as (model, _):
        said = model.complete(question())
    assert (said.model, said.fingerprint) == ("m-1-2026-01-01", "fp_1")


def test_extra_fields_go_into_the_body_and_are_never_left_out() -> None:
    extra: dict[str, Json] = {"reasoning_effort": "high", "provider": {"order": ["a"]}}
    refusal = status(400, "Unsupported parameter: 'reasoning_effort'", param="reasoning_effort")
    with asking(reply(), refusal, extra=extra) as (model, server):
        model.complete(question())
        with pytest.raises(ModelError, match="reasoning_effort"):
            model.complete(question())
    assert {name: server.requests[0].body[name] for name in extra} == extra


THOUSAND = {"prompt_tokens": 1000, "completion_tokens": 100}


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (THOUSAND, (1000, 100, 0, 0, 0)),
        ({**THOUSAND, "prompt_tokens_details": {"cached_tokens": 900}}, (1000, 100, 900, 0, 0)),
        ({**THOUSAND, "prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 8}}, (1000, 100, 9, 8, 0)),
        ({**THOUSAND, "completion_tokens_details": {"reasoning_tokens": 60}}, (1000, 100, 0, 0, 60)),
        ({**THOUSAND, "prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}, (1000, 100, 900, 0, 0)),
        ({**THOUSAND, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}, (1000, 100, 7, 5, 0)),
        # Who counts what the cache held apart …
        (
            {
                "input_tokens": 88,
                "output_tokens": 100,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 12,
            },
            (1000, 100, 900, 12, 0),
        ),
        # … and who counts what nobody sees in the total only.
        (
            {**THOUSAND, "total_tokens": 1160, "completion_tokens_details": {"reasoning_tokens": 60}},
            (1000, 160, 0, 0, 60),
        ),
        ({**THOUSAND, "total_tokens": 1160}, (1000, 160, 0, 0, 60)),
        ({**THOUSAND, "prompt_tokens_details": None, "completion_tokens_details": "?"}, (1000, 100, 0, 0, 0)),
        ({"prompt_tokens": -1, "completion_tokens": True}, (0, 0, 0, 0, 0)),
        ({**THOUSAND, "prompt_tokens_details": {"cached_tokens": 2000}}, (1000, 100, 0, 0, 0)),
        ({**THOUSAND, "completion_tokens_details": {"reasoning_tokens": 10**30}}, (1000, 100, 0, 0, 0)),
        ({"prompt_tokens": 10**30, "completion_tokens": 10**400}, (0, 0, 0, 0, 0)),
    ],
)
def test_tokens_are_found_wherever_a_provider_puts_them(
    usage: dict[str, object], counted: tuple[int, int, int, int, int]
) -> None:
    with asking(reply(usage=usage)) as (model, _):
        said = model.complete(question()).usage
    names = (said.prompt_tokens, said.completion_tokens, said.cached_tokens, said.cache_write_tokens)
    assert (*names, said.reasoning_tokens) == counted


def test_a_reply_that_got_lost_is_said_before_it_is_asked_for_again() -> None:
    lost: list[int] = []
    behaviours = (torn(), stalled(), status(504, headers=NOW), status(500), reply("fine"))
    with asking(*behaviours, try_seconds=2.0) as (model, server):
        said = model.complete(replace(question(), control=Losing(lambda again: lost.append(len(server.requests)))))
    assert said.usage.retries == 4
    # What the server refused to answer costs nothing; what its gateway did not wait for may.
    assert lost == [1, 2, 3]


def test_a_reply_that_is_given_up_is_not_asked_for_again() -> None:
    lost: list[bool] = []
    with asking(torn()) as (model, server), pytest.raises(ModelError):
        model.complete(replace(question(), control=Losing(lost.append)))
    assert lost == [True] * (len(server.requests) - 1) + [False]
    assert len(lost) > 1


def test_a_reply_that_may_not_get_lost_again_ends_it() -> None:
    def enough(again: bool) -> None:
        raise BudgetSpent("The money is gone.")

    with asking(torn(), reply("fine")) as (model, server), pytest.raises(BudgetSpent):
        model.complete(replace(question(), control=Losing(enough)))
    assert len(server.requests) == 1


def test_sixty_four_questions_are_open_at_once() -> None:
    everybody = threading.Barrier(64)

    def together(asked: Asked) -> Answer:
        everybody.wait(60)
        return reply(asked.body["messages"][0]["content"])

    with asking(together) as (model, _), ThreadPoolExecutor(64) as pool:
        texts = list(pool.map(lambda number: model.complete(question(str(number), timeout=60)).text, range(64)))
    assert texts == [str(number) for number in range(64)]


def test_a_cost_said_by_the_provider_wins() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    with asking(reply(usage=usage)) as (model, _):
        assert model.complete(question()).usage.cost == 0.25


@pytest.mark.parametrize(
    "number",
    [
        {"cost": float("nan")},
        {"cost": float("inf")},
        {"cost": 1e308},
        {"cost": 10**400},
        {"cost": -0.01},
        {"prompt_tokens": 10**30},
        {"completion_tokens": -1},
        {"total_tokens": 10**400},
        {"prompt_tokens_details": {"cached_tokens": 1001}},
        {"completion_tokens_details": {"reasoning_tokens": 101}},
        {"cache_creation_input_tokens": 10**30},
    ],
    ids=lambda number: next(iter(number)),
)
def test_an_impossible_number_makes_the_cost_unknown(number: dict[str, object]) -> None:
    with asking(reply("Hi.", usage={**THOUSAND, **number})) as (model, _):
        said = model.complete(question())
    assert (said.text, said.usage.cost) == ("Hi.", None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(content=b" " * (5 << 20)), "more than 4 MiB"),
        (Answer(status=500, content=b"x" * (2 << 20)), "more than 1 MiB"),
        (Answer(content=b'{"a":' * 100 + b"1" + b"}" * 100), "nested more than 64 deep"),
        (Answer(content=b"[" + b"[]," * 300_000 + b"[]]"), "more than 200,000 values"),
    ],
    ids=["bytes", "error", "depth", "values"],
)
def test_a_body_over_a_limit_is_lost_and_not_asked_for_again(answer: Answer, words: str) -> None:
    lost: list[bool] = []
    with asking(answer) as (model, server), pytest.raises(ModelError, match=rf"exceeds a limit \(.*{words}"):
        model.complete(replace(question(), control=Losing(lost.append)))
    assert (len(server.requests), lost) == (1, [False])


def test_a_reply_that_is_merely_long_counts_as_cut_off() -> None:
    calls = [{"function": {"name": "write", "arguments": "x" * (2 << 20)}}]
    with asking(reply("word " * 400_000), reply("", tool_calls=calls)) as (model, _):
        first, second = model.complete(question()), model.complete(question())
    assert (len(first.text), first.finish) == (1 << 20, "length")
    assert (second.calls, second.finish) == ((), "length")


def test_a_redirect_is_followed_on_the_same_host_alone() -> None:
    def to(address: str) -> Answer:
        return Answer(status=307, headers={"Location": address})

    with asking(to("/v2/chat/completions"), reply("moved")) as (model, server):
        assert model.complete(question()).text == "moved"
    assert [asked.path for asked in server.requests] == ["/v1/chat/completions", "/v2/chat/completions"]
    with ChatServer() as other:
        for address in (other.url, "file:///etc/passwd", "http://[::", "/v1/chat/completions"):
            with asking(to(address)) as (model, _), pytest.raises(ModelError, match=r"redirects.*--api-base"):
                model.complete(question())
    assert other.requests == []


def test_what_a_provider_writes_is_shown_without_control_characters_and_tags() -> None:
    page = f"<html><script>alert(1)</script><h1>Bad\x1b[2J gateway</h1>{KEY}</html>"
    with asking(Answer(status=403, content=page.encode())) as (model, _), pytest.raises(ModelError) as caught:
        model.complete(question())
    assert "(HTTP 403: Bad\ufffd[2J gateway ***)" in str(caught.value)
    with asking(served("m-1\x1b[31m", "x" * 5000)) as (model, _):
        said = model.complete(question())
    assert (said.model, len(said.fingerprint)) == ("m-1\ufffd[31m", 100)


def test_a_reply_without_usage_has_an_unknown_cost() -> None:
    with asking(reply(usage={})) as (model, _):
        assert model.complete(question()).usage.cost is None


@pytest.mark.parametrize(
    "first",
    [
        status(429, "slow down", headers=NOW),
        status(429, "slow down", headers={"retry-after-ms": "1"}),
        status(408),
        status(409),
        status(500),
        status(503, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        torn(),
        Answer(content=b'{"choices": [{"mess'),
        Answer(content=b"<html>a proxy's page</html>"),
        json_answer({"error": {"message": "Provider returned error", "code": 502}}),
        json_answer({"choices": []}),
    ],
    ids=["429", "429-ms", "408", "409", "500", "503-date", "torn", "cut-json", "html", "error-in-200", "no-choices"],
)
def test_what_may_pass_is_asked_again(first: Answer) -> None:
    with asking(first, reply("fine")) as (model, server):
        assert model.complete(question()).text == "fine"
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body


def test_a_stalled_reply_is_cut_and_asked_again() -> None:
    with asking(stalled(), reply("fine"), try_seconds=0.2) as (model, server):
        assert model.complete(question()).text == "fine"
    assert len(server.requests) == 2


def test_a_reply_kept_alive_with_blanks_is_cut_too() -> None:
    with asking(Answer(drip=True), reply("fine"), try_seconds=0.2) as (model, _):
        assert model.complete(question()).text == "fine"


def test_by_default_a_stalled_reply_leaves_time_for_a_second_try() -> None:
    with asking(stalled(), reply("fine")) as (model, _):
        assert model.complete(question(timeout=3.0)).text == "fine"


def test_replies_that_always_stall_end_with_an_error_within_the_requests_time() -> None:
    started = time.monotonic()
    with (
        asking(stalled(), try_seconds=0.2) as (model, server),
        pytest.raises(ModelError, match="did not answer in time"),
    ):
        model.complete(question(timeout=0.7))
    assert time.monotonic() - started < 5
    assert len(server.requests) >= 2


def test_errors_that_never_end_are_given_up() -> None:
    with asking(status(500, "melting", headers=NOW)) as (model, server), pytest.raises(ModelError) as caught:
        model.complete(question())
    assert len(server.requests) == 8
    assert str(caught.value) == (
        "Model 'm-1': the test's server has trouble of its own after 8 tries (HTTP 500: melting); try again later."
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(401, f"Incorrect API key provided: {KEY}"), "did not accept the key.*OPENAI_API_KEY"),
        (status(403), "refused access"),
        (status(404, "The model `m-1` does not exist"), "does not know this model"),
        (status(400, "bad role"), "refused the request.*bad role"),
        (status(422, "bad role"), "refused the request"),
        (status(402), "no money left"),
        (status(429, "You exceeded your current quota", code="insufficient_quota", headers=NOW), "no money left"),
    ],
)
def test_what_will_not_pass_is_not_asked_again(answer: Answer, words: str) -> None:
    with asking(answer) as (model, server), pytest.raises(ModelError, match=words) as caught:
        model.complete(question())
    assert len(server.requests) == 1
    assert KEY not in str(caught.value)


def test_a_wait_longer_than_the_requests_time_is_not_begun() -> None:
    started = time.monotonic()
    slow = status(429, "slow down", headers={"Retry-After": "3600"})
    with asking(slow) as (model, server), pytest.raises(ModelError, match="asks to wait 3600 s"):
        model.complete(question())
    assert time.monotonic() - started < 10
    assert len(server.requests) == 1


def test_closing_a_model_ends_its_wait() -> None:
    with asking(status(429, headers={"Retry-After": "15"})) as (model, _):
        model.close()
        started = time.monotonic()
        with pytest.raises(ModelError):
            model.complete(question())
    assert time.monotonic() - started < 10


def test_closing_a_model_ends_a_call_under_way() -> None:
    arrived = threading.Event()

    def never(asked: Asked) -> Answer:
        arrived.set()
        return stalled()

    with asking(never) as (model, server), ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        call = pool.submit(model.complete, question())
        assert arrived.wait(10)
        model.close()
        assert isinstance(call.exception(), ModelError)
    assert time.monotonic() - started < 10
    assert len(server.requests) == 1


def test_an_endpoint_that_is_not_there_is_an_error_of_ours() -> None:
    with ChatServer() as server:
        url = server.url
    endpoint = Endpoint(title="nobody", base_url=url, model="m-1")
    with (
        closing(OpenAIModel(name="m-1", endpoint=endpoint, patience=Patience(base_delay=0.001))) as model,
        pytest.raises(ModelError, match="could not be reached"),
    ):
        model.complete(question())


def test_refused_parameters_are_left_out_or_renamed_and_that_is_remembered() -> None:
    max_tokens = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    with asking(
        status(400, max_tokens, param="max_tokens", code="unsupported_parameter"),
        status(400, "Unsupported value: 'temperature' does not support 0.0.", param="temperature"),
        json_answer({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}, status=422),
        reply("fine"),
    ) as (model, server):
        assert model.complete(question()).text == "fine"
        assert model.complete(question()).text == "fine"
        assert model.complete(question()).left_out == ("temperature", "seed")
    assert len(server.requests) == 6
    last = server.requests[-1].body
    assert last["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature", "seed"} & last.keys()


def test_a_parameter_refused_for_good_ends_with_an_error() -> None:
    answer = status(400, "max_tokens is too large", param="max_tokens")
    with asking(answer) as (model, server), pytest.raises(ModelError, match="too large"):
        model.complete(question())
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        status(400, "This model's maximum context length is 10 tokens.", code="context_length_exceeded"),
        status(400, "request (9 tokens) exceeds the available context size", type="exceed_context_size_error"),
        status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
def test_a_question_longer_than_the_models_context_is_an_empty_reply(answer: Answer) -> None:
    with asking(answer) as (model, server):
        said = model.complete(question())
    assert said == Reply(text="", finish="length", usage=said.usage)
    assert (said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.cost) == (0, 0, 0.0)
    assert len(server.requests) == 1


def test_a_key_that_would_be_cut_in_two_is_masked_all_the_same() -> None:
    key = "0123456789" * 4
    with ChatServer([status(401, "x" * 280 + key)]) as server:
        endpoint = Endpoint(title="the test's server", base_url=server.url, model="m-1", key=key)
        with closing(OpenAIModel(name="m-1", endpoint=endpoint)) as model, pytest.raises(ModelError) as caught:
            model.complete(question())
    assert "0123" not in str(caught.value)


@pytest.mark.parametrize(("key_name", "told"), [("OPENAI_API_KEY", True), ("DEEPSEEK_API_KEY", False), ("", False)])
def test_what_is_openais_is_told_to_openai_alone(monkeypatch: pytest.MonkeyPatch, key_name: str, told: bool) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: 1\nAuthorization: Bearer gateway-1")
    with ChatServer() as server:
        endpoint = Endpoint(title="", base_url=server.url, model="m-1", key=KEY, key_name=key_name)
        with closing(OpenAIModel(name="m-1", endpoint=endpoint)) as model:
            model.complete(question())
    names = ("openai-organization", "openai-project", "x-gateway")
    assert [server.requests[0].headers.get(name) for name in names] == (
        ["org-1", "project-1", "1"] if told else [None] * 3
    )
    if not told:
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_password_in_an_address_is_used_and_not_shown() -> None:
    with ChatServer([status(401, "no")]) as server:
        address = server.url.replace("http://", "http://me:hunter2@")
        endpoint = resolve("vllm/m-1", address, {})
        with closing(OpenAIModel(name="m-1", endpoint=endpoint)) as model, pytest.raises(ModelError) as caught:
            model.complete(question())
    assert server.requests[0].headers["authorization"] == "Basic bWU6aHVudGVyMg=="
    assert "127.0.0.1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_key_appears_in_no_text_and_no_representation() -> None:
    assert KEY not in repr(resolve("gpt-5", None, {"OPENAI_API_KEY": KEY}))
    assert mask(f"your key {KEY} and sk-or-v1-abcdef123456", KEY) == "your key *** and ***"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "1e308"}, 86_400.0),
        ({"retry-after-ms": "1e308"}, 86_400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86_400.0),
        ({"retry-after": "Fri, 99 Zzz 99999999999"}, None),
    ],
)
def test_a_wait_is_read_as_seconds_milliseconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, 60.0) == seconds


def test_making_a_model_without_its_key_names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    options = ModelSettings(cache=tmp_path)
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        openai.make(ModelContext(options=options, name="anthropic/claude-opus-4"))
