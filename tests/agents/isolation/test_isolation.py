"""What every cell keeps to, run in each; and what an agent in one cannot do."""

from __future__ import annotations

import functools
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from retrial.agents import isolation
from retrial.agents.isolation import AgentCommand, AgentExit, Isolation
from retrial.agents.isolation.runner import OUTPUT_BYTES, RESULT_BYTES
from retrial.errors import SandboxError, UsageError
from retrial.languages.python.toolchain import interpreter
from retrial.options import HarnessOptions
from retrial.patches.workspace import Folder, open_workspace
from retrial.protocols import WorkspaceCheck
from retrial.sandboxes.docker import images
from retrial.types import Outcome, Verdict
from tests.parts import PYTHON, ready

pytestmark = pytest.mark.real

BASE = {"add.py": b"def add(a, b): ...\n", "data/table.txt": b"1 2 3\n"}
ENGINE = "/var/run/docker.sock"


class Files:
    """A tree that is nothing but its files."""

    digest = "test"

    def __init__(self, files: Mapping[str, bytes] = BASE) -> None:
        self._files = files

    def files(self) -> Mapping[str, bytes]:
        return self._files

    def modes(self) -> Mapping[str, str]:
        return {}

    def some(self, paths: object) -> Mapping[str, bytes]:
        return self._files


def options(kind: str, **more: Any) -> HarnessOptions:
    """For a cell of this kind; skips where there can be none."""
    ready("docker" if kind == "docker" else "bwrap")
    own: dict[str, Any] = {"agent_on_host": True} if kind == "host" else {}
    if kind == "docker":
        own = {"agent_image": images.name(PYTHON)}
    return HarnessOptions(agent="command", **{**own, **more})


@functools.cache
def plain(kind: str) -> Isolation:
    """A cell whose agent is given nothing."""
    return isolation.choose(options(kind))


@pytest.fixture(params=["bwrap", "docker", "host"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["bwrap", "docker"])
def isolated(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def workspace() -> Iterator[Folder]:
    with open_workspace(Files()) as folder:
        yield folder


def no_tests() -> Verdict:
    raise AssertionError("nobody asked for tests")


def plenty() -> float:
    return 60.0


def run(
    cell: Isolation,
    workspace: Folder,
    script: str,
    check: WorkspaceCheck = no_tests,
    left: Callable[[], float] = plenty,
    **more: Any,
) -> AgentExit:
    return cell.run(AgentCommand(command=("/bin/sh", "-c", script), **more), workspace, check, left)


def test_a_program_edits_its_workspace_and_says_how_it_went(kind: str, workspace: Folder) -> None:
    ran = run(plain(kind), workspace, "pwd; echo oops >&2; echo 'x = 1' >new.py; rm data/table.txt; exit 3")
    assert (ran.exit_code, ran.timed_out) == (3, False)
    assert ran.output.splitlines()[1:] == ["oops"]
    assert "+x = 1" in workspace.diff()
    assert "-1 2 3" in workspace.diff()


def test_a_program_has_no_descriptors_but_its_streams(kind: str, workspace: Folder, inheritable: int) -> None:
    assert os.get_inheritable(inheritable)
    assert run(plain(kind), workspace, "ls /proc/$$/fd; :").output.split() == ["0", "1", "2"]


def test_files_lie_where_their_variables_say_and_cannot_be_changed(isolated: str, workspace: Folder) -> None:
    script = 'cat "$RETRIAL_PROMPT"; rm -f "$RETRIAL_PROMPT"; echo more >>"$RETRIAL_TEST"; cat "$RETRIAL_PROMPT"'
    ran = run(plain(isolated), workspace, script, files={"prompt.md": b"Do it.\n"})
    assert ran.output.count("Do it.\n") == 2


def test_it_can_commit_and_look_at_the_history_of_its_workspace(workspace: Folder) -> None:
    script = (
        "echo 'x = 1' >add.py && git add -A && git -c user.name=a -c user.email=b commit -qm mine && git log --oneline"
    )
    ran = run(plain("bwrap"), workspace, script)
    assert (ran.exit_code, len(ran.output.splitlines())) == (0, 2), ran.output
    assert "+x = 1" in workspace.diff()


def test_the_test_client_runs_the_check_and_its_outcome_comes_back(kind: str, workspace: Folder) -> None:
    seen = []

    def check() -> Verdict:
        seen.append(workspace.diff())
        passed = "return" in seen[-1]
        return Verdict(outcome=Outcome.RESOLVED if passed else Outcome.TESTS_FAILED, stdout=f"test {len(seen)}")

    script = """
    "$RETRIAL_TEST"; echo "ended with $?"
    echo 'def add(a, b): return a + b' >add.py
    "$RETRIAL_TEST"; echo "ended with $?"
    """
    ran = run(plain(kind), workspace, script, check)
    assert ran.output.splitlines() == ["test 1", "ended with 1", "test 2", "ended with 0"]
    assert seen[0] == ""


def test_without_a_python_the_client_says_so(workspace: Folder) -> None:
    ran = run(plain("docker"), workspace, 'PATH=/nowhere; "$RETRIAL_TEST"; echo "ended with $?"')
    assert ran.output.splitlines() == [
        "No verdict: the test client needs python3, and there is none here.",
        "ended with 2",
    ]


def test_a_check_that_cannot_be_made_ends_the_program_and_is_raised(kind: str, workspace: Folder) -> None:
    def broken() -> Verdict:
        raise SandboxError("the engine went away")

    cell = plain(kind)
    with pytest.raises(SandboxError, match="the engine went away"):
        run(cell, workspace, '"$RETRIAL_TEST"; echo lost >lost.py; sleep 1000', broken)


def test_when_the_time_is_over_what_it_has_by_then_counts(kind: str, workspace: Folder) -> None:
    asked = []

    def check() -> Verdict:
        asked.append(1)
        return Verdict(outcome=Outcome.TESTS_FAILED)

    cell, script = plain(kind), 'echo half >half.py; "$RETRIAL_TEST"; sleep 1000'
    ran = run(cell, workspace, script, check, lambda: 0.0 if asked else 60.0)
    assert (ran.exit_code, ran.timed_out) == (None, True)
    assert "+half" in workspace.diff()


def test_time_stands_still_while_tests_run(kind: str, workspace: Folder) -> None:
    seconds, looked = [60.0], threading.Event()

    def left() -> float:
        if seconds[0] < 0:
            looked.set()
        return seconds[0]

    def check() -> Verdict:
        seconds[0] = -1.0
        assert looked.wait(60)
        seconds[0] = 60.0
        return Verdict(outcome=Outcome.RESOLVED)

    # It says something all the while, so that whoever listens looks at the clock again and again.
    script = '"$RETRIAL_TEST" & while kill -0 $! 2>/dev/null; do echo waiting; done; echo done'
    ran = run(plain(kind), workspace, script, check, left)
    assert (ran.exit_code, ran.timed_out) == (0, False)
    assert ran.output.endswith("done\n")


def test_much_output_is_cut_in_the_middle(kind: str, workspace: Folder) -> None:
    script = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"
    output = run(plain(kind), workspace, script).output
    assert output.startswith("first\n")
    assert output.endswith("last\n")
    assert len(output) < OUTPUT_BYTES + 100


def test_plain_files_that_it_leaves_come_back_and_nothing_else(kind: str, workspace: Folder, tmp_path: Path) -> None:
    script = f"""
    cd "$RETRIAL_OUT" && echo '{{"cost": 1}}' >usage.json && ln -s /etc/passwd link && mkfifo pipe && mkdir folder
    head -c {RESULT_BYTES + 1} /dev/zero >huge; echo secret >closed; chmod 000 closed
    """
    ran = run(plain(kind), workspace, script)
    assert ran.exit_code == 0
    assert ran.results["usage.json"] == b'{"cost": 1}\n'
    assert set(ran.results) <= {"usage.json", "closed"}


def test_whatever_it_makes_of_its_own_folder_it_is_measured_and_removed(
    workspace: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nest = "import os; os.mkdir('closed'); [(os.mkdir('d'), os.chdir('d')) for _ in range(2100)]"
    script = f'cd "$RETRIAL_OUT"; {interpreter()} -c "{nest}"; chmod 000 closed .; echo done'
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = run(plain("bwrap"), workspace, script)
    assert (ran.exit_code, ran.output, dict(ran.results)) == (0, "done\n", {})
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_it_is_alive_afterwards(kind: str, workspace: Folder) -> None:
    word = f"left-{secrets.token_hex(8)}"
    # On the host only what stays in its session can be ended.
    start = "" if kind == "host" else "setsid "
    script = f"{start}sh -c 'while :; do sleep 1000; done' {word} & echo begun"
    assert run(plain(kind), workspace, script).output == "begun\n"
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and word in command_line(pid)] == []


def command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def test_it_gets_the_variables_that_are_named_and_no_others(
    isolated: str, workspace: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-agents")
    monkeypatch.setenv("NAMED_HERE", "it's\nhere")
    given = options(isolated, agent_env=("NAMED_HERE", "WITH_VALUE=a=b", "EMPTY="))
    output = run(isolation.choose(given), workspace, "env; echo; env >seen", environment={"OWN": "1"}).output
    assert "NAMED_HERE=it's\nhere\n" in output
    assert {"WITH_VALUE=a=b", "EMPTY=", "OWN=1", "RETRIAL_WORKSPACE=/workspace"} <= set(output.splitlines())
    assert "sk-not-for-agents" not in output


def test_a_key_that_it_prints_is_not_shown_to_people(kind: str, workspace: Folder) -> None:
    given = options(kind, agent_env=("SOME_API_KEY=sk-1234567890",))
    ran = run(isolation.choose(given), workspace, 'echo "$SOME_API_KEY" | tee key.txt')
    assert ran.output == "[SOME_API_KEY]\n"
    assert workspace.read("key.txt") == b"sk-1234567890\n"


def test_it_is_not_in_the_list_of_processes_what_it_was_given(workspace: Folder) -> None:
    seen = list[str]()

    def check() -> Verdict:
        seen.extend(command_line(pid) for pid in os.listdir("/proc") if pid.isdigit())
        return Verdict(outcome=Outcome.RESOLVED)

    given = options("bwrap", agent_env=("SOME_API_KEY=sk-1234567890",))
    run(isolation.choose(given), workspace, '"$RETRIAL_TEST"', check)
    assert any("bwrap" in line for line in seen)
    assert not any("sk-1234567890" in line for line in seen)


def test_what_is_named_can_be_read_at_its_path_and_what_is_beside_it_cannot(
    isolated: str, workspace: Folder, tmp_path: Path
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    given = options(isolated, agent_path=(str(shown),))
    ran = run(
        isolation.choose(given), workspace, f"cat {shown}/file; cat {hidden}/file; echo x >{shown}/new; ls {tmp_path}"
    )
    assert ran.output.startswith("shown")
    assert not (shown / "new").exists()
    assert ran.output.endswith("\nshown\n")


def test_our_cache_is_not_in_view_even_where_all_around_it_is(
    isolated: str, workspace: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    (own / "cache" / "clones").mkdir(parents=True)
    (own / "cache" / "clones" / "gold.patch").write_text("secret")
    (own / "cache" / "tool").write_text("tool")
    (own / "else").write_text("else")
    cell_options = options(isolated, agent_path=(str(own),), benchmark=str(own / "rows.jsonl"))
    monkeypatch.setenv("RETRIAL_CACHE", str(own / "cache"))
    (own / "rows.jsonl").write_text("secret")
    script = f"cat {own}/else; find {own}/cache; cat {own}/cache/tool {own}/rows.jsonl 2>/dev/null"
    ran = run(isolation.choose(cell_options), workspace, script, shown=(own / "cache" / "tool",))
    assert ran.output.splitlines() == [f"else{own}/cache", f"{own}/cache/tool", "tool"]


@pytest.mark.parametrize(
    "place",
    ["/", "/usr", "/etc", "/etc/passwd", "/run/retrial", "/run/retrial/test", "/dev", "/proc/sys/kernel/hostname"],
)
def test_it_can_write_nowhere_but_in_its_workspace_and_its_own_tmp(
    place: str, isolated: str, workspace: Folder
) -> None:
    target = place if os.path.isfile(place) or place.endswith("/test") else f"{place.rstrip('/')}/new"
    script = f"""
    (echo x >{target}) 2>/dev/null && echo written
    for place in . /tmp "$HOME" "$RETRIAL_OUT"; do echo x >$place/new || echo "not in $place"; done
    """
    assert run(plain(isolated), workspace, script).output == ""


def test_it_cannot_reach_the_engine_nor_other_processes(isolated: str, workspace: Folder) -> None:
    script = f"""
    ls {ENGINE} /run/docker.sock /run/containerd 2>/dev/null
    ls -d /proc/{os.getpid()} 2>/dev/null
    id -u
    grep CapEff /proc/self/status
    """
    user = os.getuid() if os.getuid() and isolated == "docker" else 65534
    assert run(plain(isolated), workspace, script).output.split() == [str(user), "CapEff:", "0000000000000000"]


def test_a_crash_of_it_leaves_no_core_and_starts_nothing_on_the_host(isolated: str, workspace: Folder) -> None:
    ran = run(plain(isolated), workspace, "sh -c 'kill -SEGV $$' 2>/dev/null; grep core /proc/self/limits; ls")
    assert ran.output.split() == ["Max", "core", "file", "size", "1", "1", "bytes", "add.py", "data"]


def test_it_reaches_a_server_on_this_host(kind: str, workspace: Folder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3"
        errand = AgentCommand(command=("/bin/bash", "-c", script))
        assert plain(kind).run(errand, workspace, no_tests, plenty).exit_code == 0
        with server.accept()[0] as wire:
            assert wire.recv(100) == b"hello\n"


def test_it_resolves_its_own_host_name(isolated: str, workspace: Folder) -> None:
    assert run(plain(isolated), workspace, 'getent hosts "$(uname -n)"').exit_code == 0


def test_whatever_it_makes_of_its_workspace_is_read_and_removed() -> None:
    nest = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(2100)]"
    script = f"""
    echo 'x = 1' >add.py
    ln -s / root; ln -s ../.. up; ln -s loop loop; mkfifo pipe; rm -rf .git; ln -s /etc .git
    for number in 1 2 3 4 5 6 7 8 9; do ln -s "../data" "data/link$number"; done
    mkdir closed && echo deep >closed/file && chmod 000 closed/file closed && chmod 000 data
    exec {interpreter()} -c "{nest}"
    """
    cell = plain("bwrap")
    with open_workspace(Files()) as workspace:
        assert run(cell, workspace, script).exit_code == 0
        patch, holder = workspace.diff(), workspace.root.parent
    assert "+x = 1" in patch
    assert "+deep" in patch
    assert "root:" not in patch
    assert not holder.exists()


@pytest.mark.usefixtures("root")
def test_a_second_errand_finds_what_the_first_left_and_what_we_wrote_in_between(workspace: Folder) -> None:
    cell = plain("bwrap")
    run(cell, workspace, "echo first >first.txt")
    workspace.write("ours.txt", b"ours\n")
    ran = run(cell, workspace, "cat first.txt && echo more >>ours.txt && rm first.txt && cat ours.txt")
    assert (ran.exit_code, ran.output) == (0, "first\nours\nmore\n")


def test_a_program_that_cannot_be_started_is_no_failure_of_the_agent(workspace: Folder, tmp_path: Path) -> None:
    cell = plain("bwrap")
    with pytest.raises(SandboxError, match=r"was not started.*no-such-folder"):
        run(cell, workspace, "true", shown=(tmp_path / "no-such-folder",))


def test_what_it_prints_first_cannot_pass_for_a_cell_that_did_not_start(kind: str, workspace: Folder) -> None:
    ran = run(plain(kind), workspace, "echo 'bwrap: no'; exit 125")
    assert (ran.exit_code, ran.output) == (125, "bwrap: no\n")


def test_an_image_that_is_not_there_is_said_before_anything_runs() -> None:
    given = options("docker", agent_image="retrial-test/no-such-image:1")
    with pytest.raises(UsageError, match="docker pull retrial-test/no-such-image:1"):
        isolation.choose(given)


def test_without_bubblewrap_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"bubblewrap is not installed.*--agent-image.*--agent-on-host"):
        isolation.choose(HarnessOptions(agent="command"))
