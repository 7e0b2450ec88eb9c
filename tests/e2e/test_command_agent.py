"""harness.py -a command, as a user calls it: any program edits, tests and spends, and sees only what it may."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from retrial.languages.python.toolchain import interpreter
from retrial.sandboxes.docker import images
from retrial.system.secrets import HIDDEN
from tests.conftest import Run
from tests.parts import PYTHON, ready
from tests.support.exercises import RIGHT, STUB, TESTS, WRONG, write_exercise

pytestmark = pytest.mark.real

# Looks into its environment, into every process it can see, and into every file that is not older than the secrets.
WALKER = """\
import os, re, stat, sys

start, since = sys.argv[1], float(sys.argv[2])
found, looked = set(), 0

def look(path, most):
    global looked
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(opened, "rb") as file:
        try:
            found.update(re.findall(rb"planted-\\w+-[0-9a-f]{16}", file.read(most)))
            looked += 1
        except OSError:
            pass

for name, value in os.environ.items():
    found.update(re.findall(rb"planted-\\w+-[0-9a-f]{16}", value.encode(errors="replace")))
for process in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "maps", "mounts", "mountinfo"):
        look(f"/proc/{process}/{name}", 10_000_000)
for folder, folders, names in os.walk(start):
    folders[:] = [each for each in folders if os.path.join(folder, each) not in ("/proc", "/sys")]
    for path in (os.path.join(folder, name) for name in names):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_ctime >= since - 1:
            look(path, 100_000_000)
print(f"looked into {looked} files")
print("found:", *sorted(each.decode() for each in found))
"""

# Has its solution look around where it is tested, and tell what it found.
CARRIER = """\
import os, pathlib, subprocess

pathlib.Path(os.environ["RETRIAL_WORKSPACE"], "sum_up.py").write_text({spy!r})
print(subprocess.run([os.environ["RETRIAL_TEST"]], capture_output=True, text=True).stdout)
"""

SOLVER = f"""\
import json, os, pathlib, subprocess

prompt = pathlib.Path(os.environ["RETRIAL_PROMPT"]).read_text()
assert "returns the sum of two numbers" in prompt and "sum_up.py" in prompt
solution = pathlib.Path(os.environ["RETRIAL_WORKSPACE"], "sum_up.py")
for content in ({WRONG!r}, {RIGHT!r}):
    solution.write_text(content)
    done = subprocess.run([os.environ["RETRIAL_TEST"]], capture_output=True, text=True)
    print(os.environ["RETRIAL_MODEL"], "got", done.returncode, done.stdout)
usage = {{"cost": 0.25, "prompt_tokens": 1000, "completion_tokens": 50}}
pathlib.Path(os.environ["RETRIAL_OUT"], "usage.json").write_text(json.dumps(usage))
"""


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    ready("bwrap")


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / "tools" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def command(run: Run, benchmark: Path, text: str, *more: object, **environment: str) -> Any:
    return run(
        "harness.py", "-b", benchmark, "-a", "command", "--command", text, "--sandbox", "bwrap", "--run", "it",
        "--tries", 1, *more, **environment,
    )  # fmt: skip


def stored(home: Path, name: str) -> Any:
    return json.loads((home / "predictions" / "it" / name).read_text(encoding="utf-8"))


def record(home: Path) -> Any:
    [path] = (home / "predictions" / "it").glob("*sum_up.json")
    return json.loads(path.read_text(encoding="utf-8"))


def transcript(home: Path) -> str:
    [path] = (home / "predictions" / "it").glob("*sum_up.md")
    return path.read_text(encoding="utf-8")


@pytest.mark.smoke
def test_a_script_solves_a_task_with_our_tests_beside_it(run: Run, home: Path, tmp_path: Path) -> None:
    solver = program(tmp_path, "solver.py", SOLVER)
    done = command(
        run,
        write_exercise(tmp_path / "bench"),
        f"{interpreter()} {solver}",
        "-m",
        "some/model",
        "--agent-path",
        solver.parent,
    )
    assert done.returncode == 0, done.stderr
    found = record(home)["all_results"][0]
    assert (found["plausible"], found["tests_outcomes"], found["cost"]) == (True, [False, True], 0.25)
    assert (found["prompt_tokens"], found["completion_tokens"]) == (1000, 50)
    assert "some/model got 1" in transcript(home)
    assert "some/model got 0" in transcript(home)
    agent = stored(home, "run.json")["agent"]
    assert (agent["name"], agent["isolated"], agent["cell"]) == ("command", True, "bwrap")
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0
    results = stored(home, "results.json")
    assert (results["rate"]["resolved"], results["agent_isolated"]) == (1, True)


class Secrets:
    """Planted wherever an agent must not look, each a word of its own."""

    def __init__(self, tmp_path: Path, home: Path) -> None:
        self.words: dict[str, str] = {}
        self.user = tmp_path / "user"
        places = {
            "key_file": self.user / ".ssh" / "id_ed25519",
            "clone": tmp_path / "cache" / "clones" / "some" / "gold.patch",
            "verdict": tmp_path / "cache" / "verdicts" / "one.json",
            "prediction": home / "predictions" / "other" / "sum_up.json",
            "log": home / "logs" / "other" / "sum_up.eval.log",
            "data_set": self.user / ".cache" / "huggingface" / "hub" / "datasets--some--bench" / "rows.parquet",
        }
        for name, path in places.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.word(name))
        self.benchmark = write_exercise(
            tmp_path / "bench",
            stub=f"{STUB}# {self.word('stub')}\n",
            example=f"{RIGHT}# {self.word('gold')}\n",
            tests=f"{TESTS}\n# {self.word('test')}\n",
        )
        self.environment = {"HOME": str(self.user), "OPENAI_API_KEY": self.word("key")}

    def word(self, name: str) -> str:
        return self.words.setdefault(name, f"planted-{name}-{secrets.token_hex(8)}")

    def found(self, text: str) -> set[str]:
        found = {name for name, word in self.words.items() if word in text}
        # A key that we know is masked wherever it is said: that it was said can still be seen.
        return found | ({"key"} if HIDDEN in text else set())


@pytest.fixture
def planted(tmp_path: Path, home: Path) -> Secrets:
    return Secrets(tmp_path, home)


def walk(run: Run, tmp_path: Path, planted: Secrets, start: object, *more: object, python: str = interpreter()) -> None:
    walker = program(tmp_path, "walker.py", WALKER)
    since = min(path.stat().st_ctime for path in tmp_path.rglob("*") if path.is_file())
    text = f"{python} {walker} {start} {since}"
    done = command(run, planted.benchmark, text, *more, **planted.environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.smoke
def test_one_that_looks_everywhere_finds_no_answer_no_test_and_no_key(
    run: Run, home: Path, tmp_path: Path, planted: Secrets
) -> None:
    walk(run, tmp_path, planted, "/", "--agent-path", tmp_path / "tools")
    said = transcript(home)
    assert "looked into" in said
    # It is no proof that it finds nothing, unless it finds what it may see.
    assert planted.found(said) == {"stub"}


def test_nor_does_one_in_a_container(run: Run, home: Path, tmp_path: Path, planted: Secrets) -> None:
    ready("docker")
    image = ("--agent-image", images.name(PYTHON))
    walk(run, tmp_path, planted, "/", "--agent-path", tmp_path / "tools", *image, python="python3")
    assert planted.found(transcript(home)) == {"stub"}
    assert stored(home, "run.json")["agent"]["cell"] == "docker"


def test_nor_does_its_code_where_that_is_tested(run: Run, home: Path, tmp_path: Path, planted: Secrets) -> None:
    spy = f"import sys\nsys.argv = ['', '/', '{time.time() - 60}']\n{WALKER}\nraise ValueError(found)\n"
    agent = program(tmp_path, "agent.py", CARRIER.format(spy=spy))
    text = f"{interpreter()} {agent}"
    done = command(run, planted.benchmark, text, "--agent-path", agent.parent, **planted.environment)
    assert done.returncode == 0, done.stderr
    # The visible tests of an exercise are the acceptance tests; and its edit replaced the stub.
    assert planted.found(transcript(home)) == {"test", "stub"}


def test_nor_if_everything_around_them_is_shown(run: Run, home: Path, tmp_path: Path, planted: Secrets) -> None:
    # Who is nobody must be able to look into it at all.
    tmp_path.chmod(0o755)
    walk(run, tmp_path, planted, "/", "--agent-path", tmp_path)
    assert planted.found(transcript(home)) == {"stub", "key_file"}


def test_on_the_host_the_same_look_finds_them_all_and_the_results_say_so(
    run: Run, home: Path, tmp_path: Path, planted: Secrets
) -> None:
    walk(run, tmp_path, planted, tmp_path, "--agent-on-host")
    # The stub as it is in its own folder; the test that is run is in a sandbox.
    assert planted.found(transcript(home)) == set(planted.words)
    assert stored(home, "run.json")["agent"]["isolated"] is False
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0
    assert stored(home, "results.json")["agent_isolated"] is False


def test_a_key_that_is_given_is_written_nowhere(run: Run, home: Path, tmp_path: Path) -> None:
    text = 'echo "It has ${#SOME_KEY} letters: $SOME_KEY"'
    done = command(run, write_exercise(tmp_path / "bench"), text, "--agent-env", "SOME_KEY=sk-123456789")
    assert done.returncode == 0, done.stderr
    assert "It has 12 letters: [SOME_KEY]" in transcript(home)
    written = {path.name: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert b"SOME_KEY" in written["run.json"]
    assert [name for name, content in written.items() if b"sk-123456789" in content] == []


def test_the_same_run_does_not_go_on_with_another_command_nor_on_the_host(run: Run, home: Path, tmp_path: Path) -> None:
    benchmark = write_exercise(tmp_path / "bench")
    assert command(run, benchmark, "true").returncode == 0
    assert command(run, benchmark, "true").returncode == 0
    for more in (("false",), ("true", "--agent-on-host")):
        done = command(run, benchmark, *more)
        assert done.returncode == 2
        assert "other settings" in done.stderr


def test_a_command_that_is_not_there_is_said_before_anything_is_run(run: Run, home: Path, tmp_path: Path) -> None:
    done = command(run, write_exercise(tmp_path / "bench"), "no-such-agent --fix")
    assert done.returncode == 2
    assert "no program 'no-such-agent'" in done.stderr
    assert "--agent-path" in done.stderr
    assert not (home / "predictions").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-a", "command"), "give it with --command"),
        (("--command", "true"), "add -a command"),
        (("-a", "null", "--agent-on-host"), "--agent-on-host is for agents that are programs"),
        (("-a", "command", "--command", "true", "--agent-on-host", "--agent-image", "x"), "exclude each other"),
        (("-a", "command", "--command", "true", "--agent-env", "NOT_SET_ANYWHERE"), "is not set here"),
        (("-a", "command", "--command", "true", "--agent-env", "A-B=1"), "cannot be a variable's name"),
        (("-a", "command", "--command", "true", "--agent-path", "/no/such/place"), "no such file or folder"),
        (("-a", "command", "--command", "true", "--agent-path", "/"), "name what is in it"),
    ],
)
def test_bad_usage_is_one_sentence(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    done = run("harness.py", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_our_own_folders_cannot_be_named(run: Run, home: Path, tmp_path: Path) -> None:
    done = command(run, write_exercise(tmp_path / "bench"), "true", "--agent-path", tmp_path / "cache")
    assert done.returncode == 2
    assert "which no agent may see" in done.stderr


def failing(tmp_path: Path) -> tuple[Path, Path]:
    """Two tasks, and an agent that is not shown to the cell unless --agent-path names its folder."""
    for slug in ("sum-up", "sum-up-again"):
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "bench", program(tmp_path, "solver.py", SOLVER)


def test_an_agent_that_never_worked_has_no_rate(run: Run, home: Path, tmp_path: Path) -> None:
    benchmark, solver = failing(tmp_path)
    done = command(run, benchmark, f"{interpreter()} {solver}", "--tries", 2)
    assert done.returncode == 1, done.stderr
    sentence = done.stdout.splitlines()[0]
    assert "The agent never worked: all 4 attempts failed with an empty patch" in sentence
    assert "the command exited with status 2" in sentence
    assert f"can't open file '{solver}'" in sentence
    exports = {name: tmp_path / f"it.{name}" for name in ("markdown", "junit", "csv")}
    scored = run(
        "report.py",
        "it",
        "--sandbox",
        "bwrap",
        *(part for name, path in exports.items() for part in (f"--{name}", path)),
    )
    assert scored.returncode == 1, scored.stderr
    assert scored.stdout.splitlines()[0] == sentence
    assert " %" not in scored.stdout
    results = stored(home, "results.json")
    assert results["agent_failed"] == sentence
    for name in ("rate", "rate_calibrated", "rate_of_benchmark"):
        assert (results[name]["percent"], results[name]["of"]) == (None, 0)
    assert len(results["not_measured"]) == 2
    page = (home / "predictions" / "it" / "report.html").read_text()
    assert "The agent never worked" in page
    assert "0.0 %" not in page
    assert 'name="percent' not in exports["junit"].read_text()
    assert "The agent never worked" in exports["markdown"].read_text()


def test_a_run_whose_agent_never_worked_is_done_again_from_the_start(run: Run, home: Path, tmp_path: Path) -> None:
    benchmark, solver = failing(tmp_path)
    text = f"{interpreter()} {solver}"
    assert command(run, benchmark, text).returncode == 1
    done = command(run, benchmark, text, "--agent-path", solver.parent)
    assert done.returncode == 0, done.stderr
    assert "all tasks start again" in done.stderr
    assert record(home)["plausible"] is True
    assert "the agent never worked" in transcript(home)
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0
    assert stored(home, "results.json")["rate"]["of"] == 2


def test_what_failed_first_stays_while_other_tasks_are_left(run: Run, home: Path, tmp_path: Path) -> None:
    benchmark, _ = failing(tmp_path)
    text = "[ -e sum_up.py ] && exit 1; echo x >new.txt"
    assert command(run, benchmark, text, "-t", "sum-up").returncode == 1
    first = (home / "predictions" / "it" / "aider_python_sum_up.json").read_bytes()
    planned = command(run, benchmark, text, "--dry-run")
    assert "would do 1 task " in planned.stdout
    assert "cost unknown (the agent 'command' calls its model by itself)" in planned.stdout
    done = command(run, benchmark, text)
    assert done.returncode == 0, done.stderr
    assert "start again" not in done.stderr
    assert (home / "predictions" / "it" / "aider_python_sum_up.json").read_bytes() == first
    assert "cost unknown (no price" not in done.stderr
    scored = run("report.py", "it", "--sandbox", "bwrap")
    assert "cost          unknown (some costs were not reported)" in scored.stdout


def test_a_dry_run_counts_what_would_be_done_again(run: Run, home: Path, tmp_path: Path) -> None:
    benchmark, _ = failing(tmp_path)
    assert command(run, benchmark, "exit 1").returncode == 1
    assert "would do 2 tasks " in command(run, benchmark, "exit 1", "--dry-run").stdout


@pytest.mark.parametrize(
    "text",
    [
        # The second attempt has the next seed, and ends with 0.
        "exit $((1 - RETRIAL_SEED))",
        # All fail, but one of them has changed a file, if only one that does not count.
        "[ $RETRIAL_SEED = 0 ] || echo x >new.txt; exit 3",
    ],
)
def test_one_attempt_that_worked_makes_all_of_them_count(run: Run, home: Path, tmp_path: Path, text: str) -> None:
    done = command(run, write_exercise(tmp_path / "bench"), text, "--tries", 2)
    assert done.returncode == 0, done.stderr
    assert "the command exited with status" in record(home)["all_results"][0]["agent_error"]
    assert run("report.py", "it", "--sandbox", "bwrap").returncode == 0
    results = stored(home, "results.json")
    assert (results["agent_failed"], results["rate"]["percent"], results["rate"]["of"]) == (None, 0.0, 1)
