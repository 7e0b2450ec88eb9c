"""Keys come back in replies, errors, headers, patches, test output and from agents, in every form; nobody finds them.

Beside every secret stands an echo that is none. Wherever that is found, the secret would be: so these tests can fail.
A variable that is only named like a key is masked in texts; in data, such as patches and replies, it may be code.
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrial.languages.python.toolchain import interpreter
from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise
from tests.support.servers import Answer, Asked, Behaviour, ChatServer, json_answer
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

KEY = "sk-Echo/5f1c+09d2=a77b&4e"
PASSWORD = "pw.9c0ffee+77'x"
TOKEN = "tok_5f1c09d2a77b4e99aa01"
VARIABLE = "an'other\"one-5f1c09d2"
SECRETS = (KEY, PASSWORD, TOKEN, VARIABLE)
ECHO = "echo-of-nothing-5f1c"
DATA = ("journal/", "aider_python_sum_up.json", "all_preds.jsonl", "preds.json")
"""Read back as they are."""
ENVIRONMENT = {"OPENAI_API_KEY": KEY, "SOME_SECRET": VARIABLE, "RETRIAL_LOG": "debug"}
ALL = {**ENVIRONMENT, "PASSWORD": PASSWORD, "MY_TOKEN": TOKEN}
"""For a process that is told by nothing else."""
TASK = "aider_python_sum_up"


def plain_forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(json.dumps(secret)[1:-1])[1:-1]
    yield repr(secret)[1:-1]
    yield urllib.parse.quote(secret, safe="")
    yield urllib.parse.quote_plus(secret)


def in_base64(secret: str) -> list[str]:
    return [base64.b64encode(f"{'me:'[:before]}{secret}".encode()).decode() for before in range(4)]


def forms(secret: str) -> Iterator[bytes]:
    """What nobody may find; of base64 the middle, which is the same whatever stands around it."""
    yield from (form.encode() for form in plain_forms(secret))
    yield from (form[4:-6].encode() for form in in_base64(secret))


def told() -> str:
    """All secrets in all forms, and the echo."""
    return " ".join([ECHO, *(form for secret in SECRETS for form in (*plain_forms(secret), *in_base64(secret)))])


def solution(text: str) -> str:
    """Says all that it knows when it is tested."""
    return f"# {told()}\n{text}\nprint({told()!r})\n"


def server_error(asked: Asked) -> Answer:
    """With what was sent, as badly made gateways do."""
    error = {
        "error": {"message": f"{ECHO} {asked.headers['authorization']} {PASSWORD}", "headers": dict(asked.headers)}
    }
    return json_answer(error, status=500, headers={"Retry-After": "0", "X-Echo": asked.headers["authorization"]})


def refusal(asked: Asked) -> Answer:
    return json_answer({"error": {"message": f"{told()} {asked.headers['authorization']}"}}, status=401)


def places(home: Path) -> dict[str, bytes]:
    """Every file that is left, by its path."""
    found = [path for path in home.parent.rglob("*") if path.is_file() and "bench" not in path.parts]
    shared = {"weights", "stores", "aider"}
    kept = [path for path in found if not shared & set(path.parts) and path.suffix != ".sh"]
    return {str(path.relative_to(home.parent)): path.read_bytes() for path in kept}


def secrets_in(places: dict[str, bytes], *secrets: str) -> list[tuple[str, bytes]]:
    return [
        (place, form)
        for place, content in places.items()
        for secret in secrets or SECRETS
        for form in forms(secret)
        if form in content
    ]


def echoed(places: dict[str, bytes], *names: str) -> None:
    for name in names:
        assert any(ECHO.encode() in content for place, content in places.items() if name in place), f"no echo in {name}"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    noisy = f"def test_sum():\n    print({told()!r})\n    assert add(1, 2) == 3\n"
    noisy = f"from sum_up import add\n\n\n{noisy}"
    return write_exercise(tmp_path / "bench", tests=noisy)


def test_a_model_and_tests_that_tell_them(run: Run, home: Path, bench: Path) -> None:
    replies: list[Behaviour] = [
        server_error,
        answer(told()),
        answer(reply(solution(WRONG))),
        answer(reply(solution(RIGHT))),
    ]
    with ChatServer(replies) as server:
        address = server.url.replace("://", f"://me:{urllib.parse.quote(PASSWORD, safe='')}@")
        body = json.dumps({"user": ECHO, "gateway_token": TOKEN})
        flags = (
            "-m",
            "gpt-test:whole",
            "--api-base",
            address,
            "--extra-body",
            body,
            "--run",
            "R",
            "--sandbox",
            "bwrap",
        )
        done = run("harness.py", "-b", bench, *flags, "--tries", 1, **ENVIRONMENT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert {request.headers["authorization"] for request in server.requests} == {f"Basic {in_base64(PASSWORD)[3]}"}
        assert ECHO in json.dumps(server.requests[-1].body), "the tests' output"
    scored = run("report.py", "R", "--sandbox", "bwrap", **ALL)
    assert scored.returncode == 0, scored.stdout + scored.stderr
    found = places(home)
    echoed(found, "journal/", f"{TASK}.json", f"{TASK}.md", "all_preds.jsonl", "results.json", "run.json", "eval.log")
    echoed(found, "run.log")
    # A verdict with a key in it is not cached.
    assert not [place for place in found if "cache/verdicts" in place]
    streams = {"stdout": done.stdout + scored.stdout, "stderr": done.stderr + scored.stderr}
    texts = {place: content for place, content in found.items() if not place.endswith(DATA) and DATA[0] not in place}
    assert secrets_in(texts | {name: text.encode() for name, text in streams.items()}) == []
    assert secrets_in(found, KEY, PASSWORD, TOKEN) == []
    assert json.loads(found[f"home/predictions/R/{TASK}.json"])["masked"] is True


def test_a_provider_that_refuses_the_key_and_says_it(run: Run, home: Path, bench: Path) -> None:
    with ChatServer([refusal]) as server:
        flags = ("-m", "gpt-test", "--api-base", server.url, "--run", "R", "--sandbox", "bwrap")
        done = run("harness.py", "-b", bench, *flags, "--agent-env", f"GIVEN={TOKEN}", **ENVIRONMENT)
    # An option for another agent: refused, and not repeated either. What nobody knows is repeated, as far as it may be.
    assert done.returncode == 2 and secrets_in({"stderr": done.stderr.encode()}) == []
    done = run("harness.py", f"--{ECHO}={KEY}", **ENVIRONMENT)
    assert ECHO in done.stderr and secrets_in({"stderr": done.stderr.encode()}) == []
    with ChatServer([refusal]) as server:
        flags = ("-m", "gpt-test", "--api-base", server.url, "--run", "R", "--sandbox", "bwrap")
        done = run("harness.py", "-b", bench, *flags, **ALL)
    assert done.returncode == 1, done.stderr
    found = places(home) | {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    echoed(found, "stdout", "stderr", "journal/", f"{TASK}.md", "run.log")
    assert secrets_in(found) == []


def test_an_agent_that_prints_and_writes_its_environment(run: Run, home: Path, tmp_path: Path) -> None:
    plain = write_exercise(tmp_path / "other")
    program = tmp_path / "agent.py"
    program.write_text(
        "import base64, json, os, pathlib, urllib.parse\n"
        f"values = [os.environ[name] for name in ('GIVEN', 'A_KEY', 'PASSWORD', 'SOME_SECRET')] + [{ECHO!r}]\n"
        "forms = values + [json.dumps(values), json.dumps(json.dumps(values))]\n"
        "forms += [urllib.parse.quote(each, safe='') for each in values]\n"
        "forms += [base64.b64encode(f'me:{each}'.encode()).decode() for each in values]\n"
        "print(dict(os.environ), *forms)\n"
        "text = ''.join(f'# {each}\\n' for each in forms)\n"
        f"code = {RIGHT!r} + f'print({{forms!r}})\\n'\n"
        "pathlib.Path(os.environ['RETRIAL_WORKSPACE'], 'sum_up.py').write_text(text + code)\n"
    )
    given = {"GIVEN": TOKEN, "A_KEY": KEY, "PASSWORD": PASSWORD, "SOME_SECRET": VARIABLE}
    variables = [text for name, value in given.items() for text in ("--agent-env", f"{name}={value}")]
    command = (
        "-a",
        "command",
        "--command",
        f"{interpreter()} {program} {ECHO} {TOKEN}",
        "--agent-path",
        program,
        *variables,
    )
    everything = ("harness.py", "-b", plain, *command, "--run", "R", "--sandbox", "bwrap")
    done = run(*everything, RETRIAL_LOG="debug")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 done before" in run(*everything).stderr, "what is masked in run.json is no other command"
    # Nothing but a file knows them by now.
    scored = run("report.py", "R", "--sandbox", "bwrap")
    assert scored.returncode in (0, 1), scored.stderr
    found = places(home)
    echoed(found, f"{TASK}.json", f"{TASK}.md", "all_preds.jsonl", "journal/", "eval.log", "run.log", "run.json")
    streams = {"stdout": done.stdout + scored.stdout, "stderr": done.stderr + scored.stderr}
    assert secrets_in(found | {name: text.encode() for name, text in streams.items()}) == []
