"""Passwords and keys are not written down, wherever people put them and in whatever form they come back."""

from __future__ import annotations

import base64
import io
import json
import urllib.parse
from pathlib import Path

import pytest

from retrial.store.events import Replied
from retrial.store.runs import Run
from retrial.system.secrets import HIDDEN, MASKER, SecretMasker, redact_by_name
from tests.support.journals import append
from tests.support.rows import edit, record

KEY = "sk-Test/5f1c+09d2=a77b&4e"
PASSWORD = 'pä"ss\\w0rd, long'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("http://me:hunter2@host:80/v1", "http://***@host:80/v1"),
        ("--api-base=https://me:hun@ter2@host", "--api-base=https://***@host"),
        ("http://token@host/a@b", "http://***@host/a@b"),
        ('{"api_key": "hunter2", "top_p": 1}', '{"api_key": "***", "top_p": 1}'),
        ('{"a": {"X-Token" : "hun\\"ter2"}}', '{"a": {"X-Token" : "***"}}'),
        ('{"Authorization": "Bearer hunter2"}', '{"Authorization": "***"}'),
    ],
)
def test_secrets_are_hidden_once_and_for_all(text: str, kept: str) -> None:
    assert redact_by_name(text) == kept
    assert redact_by_name(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/v1",
        "me@host",
        '{"thinking": {"budget_tokens": 1024}}',
        '{"stop": "key"}',
        "",
        "-m a:whole",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert redact_by_name(text) == text


@pytest.fixture
def known() -> SecretMasker:
    found = SecretMasker()
    found.add(KEY, PASSWORD)
    return found


def basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("secret", [KEY, PASSWORD])
@pytest.mark.parametrize(
    "written",
    [
        pytest.param(str, id="as it is"),
        pytest.param(json.dumps, id="in JSON"),
        pytest.param(lambda text: json.dumps(text, ensure_ascii=False), id="in JSON of UTF-8"),
        pytest.param(lambda text: json.dumps(json.dumps({"a": text})), id="in JSON in JSON"),
        pytest.param(lambda text: urllib.parse.quote(text, safe=""), id="in an address"),
        pytest.param(urllib.parse.quote, id="in a path"),
        pytest.param(lambda text: urllib.parse.urlencode({"key": text}), id="in a form"),
    ],
)
def test_a_value_is_masked_in_whatever_form(known: SecretMasker, secret: str, written: object) -> None:
    text = written(f"<{secret}>")  # type: ignore[operator]
    masked = known.redact(text)
    assert masked == written("<SECRET>").replace("SECRET", HIDDEN)  # type: ignore[operator]
    assert known.redact_bytes(text.encode()) == masked.encode()


@pytest.mark.parametrize("user", ["", "a", "me", "you", "them"])
@pytest.mark.parametrize("after", ["", "!", "!?"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_is_masked_in_base64_whatever_stands_around_it(
    known: SecretMasker, user: str, after: str, encode: object
) -> None:
    text = encode(f"{user}:{KEY}{after}".encode()).decode()  # type: ignore[operator]
    masked = known.redact(text)
    assert HIDDEN in masked
    assert len(masked) <= len(HIDDEN) + 4 * (len(user) // 3 + 1) + 8, "but for what stands around it"


def test_a_longer_secret_is_masked_before_one_that_is_in_it() -> None:
    known = SecretMasker()
    known.add("abcd-1234-efgh", "abcd-1234-efgh-5678")
    assert known.redact("abcd-1234-efgh-5678 abcd-1234-efgh") == f"{HIDDEN} {HIDDEN}"


@pytest.mark.parametrize(
    "word", ["none", "test", "EMPTY", "development", "sk-no-key-required", "not-needed", "123456789012", "sk-1234", " "]
)
def test_words_and_numbers_are_no_keys_even_where_a_server_takes_them_for_one(word: str) -> None:
    known = SecretMasker()
    known.add(word)
    assert known.redact(f"{word} of development") == f"{word} of development"


def test_variables_are_known_by_their_names_and_addresses_by_their_logins(tmp_path: Path) -> None:
    file = tmp_path / "server-key-5f1c09.pem"
    file.touch()
    known = SecretMasker()
    known.learn_given(
        {
            "MY_API_KEY": "k-5f1c09d2a77b",
            "ci_job_token": "t-5f1c09d2a77b",
            "DB_PASSWORD": "p-5f1c09d2a77b",
            "SHORT_KEY": "k-5f1c0",
            "SERVER_KEY": str(file),
            "WORD_KEY": "developmentserver",
            "HOME": "/home/u-5f1c09d2a77b",
            "https_proxy": "http://me:x%21-5f1c09@proxy:3128",
        }
    )
    for secret in ("k-5f1c09d2a77b", "t-5f1c09d2a77b", "p-5f1c09d2a77b", "x%21-5f1c09", "x!-5f1c09"):
        assert known.redact(f"a {secret} b") == f"a {HIDDEN} b"
    for harmless in ("k-5f1c0", str(file), "developmentserver", "/home/u-5f1c09d2a77b", "http://proxy:3128"):
        assert known.redact(harmless) == harmless


def test_what_an_agent_is_given_is_known_by_its_looks_too() -> None:
    known = SecretMasker()
    known.learn_given({"GITHUB": "ghp_5f1c09d2a77b4e5f1c09", "MODEL": "claude-sonnet-4-20250514", "MODE": "fast"})
    assert known.redact("ghp_5f1c09d2a77b4e5f1c09") == HIDDEN
    assert known.redact("claude-sonnet-4-20250514 fast") == "claude-sonnet-4-20250514 fast"


@pytest.mark.parametrize(
    "argument",
    [
        "env MY_API_KEY=k-5f1c09d2a77b my-agent --fast",
        "my-agent --api-key k-5f1c09d2a77b",
        "my-agent --token='k-5f1c09d2a77b'",
        "http://host/v1?api_key=k-5f1c09d2a77b&x=1",
        'curl -H "Authorization: Bearer k-5f1c09d2a77b"',
    ],
)
def test_arguments_are_known_by_the_names_before_them(argument: str) -> None:
    known = SecretMasker()
    known.learn_arguments(["--command", argument])
    assert known.redact(argument) == argument.replace("k-5f1c09d2a77b", HIDDEN)


def test_an_argument_that_looks_like_a_key_is_one_and_names_with_hyphens_are_none() -> None:
    known, key = SecretMasker(), "sk-proj-5f1c09d2a77b4e99"
    others = [
        "--max-tokens",
        "8192",
        "-m",
        "openai/gpt-5-mini",
        "-m",
        "xai-grok-code-fast-1",
        "-t",
        "key-value-with-ttl",
    ]
    known.learn_arguments(["--command", f"agent {key}", *others])
    assert known.redact(" ".join([key, *others])) == " ".join([HIDDEN, *others])


def test_fields_of_a_request_are_known_by_their_names() -> None:
    known = SecretMasker()
    known.learn_fields({"a": [{"headers": {"Authorization": "Bearer b-5f1c09d2a77b"}}], "stop": ["s-5f1c09d2a77b"]})
    assert known.redact("b-5f1c09d2a77b s-5f1c09d2a77b") == f"{HIDDEN} s-5f1c09d2a77b"


def test_a_stream_is_masked_from_when_the_secret_is_known() -> None:
    known, below = SecretMasker(), io.BytesIO()
    stream = known.redacting_stream(io.TextIOWrapper(below, "utf-8"))
    known.add(KEY)
    print("the key is", KEY, file=stream, flush=True)
    assert below.getvalue() == f"the key is {HIDDEN}\n".encode()


def test_what_is_only_guessed_to_be_a_key_is_masked_for_people_and_left_in_data() -> None:
    known = SecretMasker()
    known.guess_variables({"DEPLOY_TOKEN": "return one + two", "https_proxy": "http://me:x-5f1c09d2@proxy"})
    known.add("k-5f1c09d2a77b")
    text = b"return one + two k-5f1c09d2a77b x-5f1c09d2"
    assert known.redact(text.decode()) == "*** *** ***"
    assert known.redact_bytes(text) == b"*** *** ***"
    assert known.redact_data(text) == b"return one + two *** ***"
    assert known.guesses == frozenset({"return one + two"}) and "k-5f1c09d2a77b" in known.values


def test_a_guess_that_turns_out_to_be_a_key_is_masked_in_data_too() -> None:
    known = SecretMasker()
    known.guess_variables({"OPENAI_API_KEY": "k-5f1c09d2a77b"})
    known.add("k-5f1c09d2a77b")
    assert known.redact_data(b"k-5f1c09d2a77b") == HIDDEN.encode()
    assert known.guesses == frozenset()


def test_a_variable_that_only_looks_like_a_key_changes_no_patch_and_no_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "return guess_5f1c09d2 + b"
    MASKER.guess(code)
    run = Run(tmp_path, "R")
    run.write_prediction("one", record("one", model_patch=edit("a.py", f"{code}\n")), f"# {code}\n")
    run.write_bundle([{"instance_id": "one", "model_name_or_path": "m", "model_patch": code}])
    run.write_official("one", {"patch.diff": code.encode(), "test_output.txt": code.encode()})
    append(run.journal("one"), "reply", reply={"text": code})
    (kept,) = run.predictions()
    assert code in (kept.model_patch or "") and not kept.masked
    assert "one.json contains the value of an environment variable that is named like a key" in capsys.readouterr().err
    assert [event.reply.text for event in run.journal("one").events() if isinstance(event, Replied)] == [code]
    assert run.patches() == {"one": code}
    assert (run.logs / "one" / "patch.diff").read_text() == code
    assert HIDDEN in run.chat("one") and HIDDEN in (run.logs / "one" / "test_output.txt").read_text()


def test_a_prediction_whose_patch_was_masked_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-prediction-5f1c09d2a77b4e"
    MASKER.add(key)
    run = Run(tmp_path, "R")
    for name, content in (("one", f'key = "{key}"\n'), ("two", "key = None\n")):
        run.write_prediction(name, record(name, model_patch=edit("a.py", content)), f"# {key}\n")
        append(run.journal(name), "reply", reply={"text": key})
    assert [each.masked for each in run.predictions()] == [True, False]
    said = capsys.readouterr().err
    assert "one.json contained a key; the key was masked" in said and "two.json" not in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and key in path.read_text()]
