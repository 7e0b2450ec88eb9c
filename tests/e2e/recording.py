"""Records what the two programs write, print and end with, as a safety net under changes of their inner structure.

    python -m tests.e2e.recording [STEP ...]

makes `tests/e2e/recorded/` anew, or these steps of it alone (see STEPS): what each step added or changed on disk, and
what it printed. Files lie there as the programs wrote them, but for names of this machine (`scrubbed`), and for pages,
of which only texts, links and data are kept (`masks.reduced`). `test_recorded_runs.py` repeats every step from the
recorded state before it, and compares after masking (`masks.masked`).

Record again only when files, options or output change on purpose: in the same commit, after reading the difference
(`git diff tests/e2e/recorded`), and with a line in the change log if users can see it. Name the steps that changed: a
new recording of `killed`, `resumed` or `grid` drops the proof that runs of earlier versions can be resumed, scored and
replayed. A change that only moves or renames code must leave the recordings as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import masks
from tests.support.exercises import RIGHT, STUB, WRONG, reply, write_exercise, write_replies

PROJECT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).with_name("recorded")
TERMINAL = "terminal.txt"
PLACE = "/place/of/the/run"
"""Stands for the folder that a step ran in."""
INPUTS = ("bench", "replies", "foreign.jsonl", "broken.jsonl")
SCORE = ("--sandbox", "bwrap", "--test-jobs", "1")
ONE_BY_ONE = ("--jobs", "1", *SCORE)
LADDER = (
    *("harness.py", "-b", "bench", "-m", "replay/replies/first.jsonl:whole", "-m", "replay/replies/second.jsonl:diff"),
    *("--run", "ladder", "--name", "two-models", "--tries", "2", "--turns", "2", "--reflections", "1"),
    *ONE_BY_ONE,
)
GRID = (
    *("harness.py", "-b", "bench", "-m", "replay/replies/first.jsonl", "-m", "replay/replies/third.jsonl", "--grid"),
    *("--edit-format", "whole", "--edit-format", "diff", "-t", "add-four", "-t", "add-two", "--run", "grid"),
    *("--tries", "1", "--turns", "1", "--reflections", "0", *ONE_BY_ONE),
)
UNANSWERED = (
    *("harness.py", "-b", "bench", "-m", "replay/replies/third.jsonl", "-t", "add-four", "-t", "add-one"),
    *("--edit-format", "diff", "--run", "unanswered", *ONE_BY_ONE),
)
FOREIGN = ("foreign.jsonl", "-b", "bench")
EXPORTS = ("--csv", "rows.csv", "--junit", "junit.xml", "--markdown", "summary.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command, and the steps that made the state it starts from."""

    name: str
    command: Sequence[str]
    after: Sequence[str] = ()
    killed_at: str = ""
    """A task of the ladder: the program is killed when the second model's answer is in its journal."""


_RESUMED = ("killed", "resumed")
STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        Step(name="harness-help", command=("harness.py", "--help")),
        Step(name="report-help", command=("report.py", "--help")),
        Step(name="killed", command=LADDER, killed_at="aider_python_add_one"),
        Step(name="resumed", command=LADDER, after=("killed",)),
        Step(name="refused", command=(*LADDER, "--tries", "3", "--seed", "7"), after=_RESUMED),
        Step(name="scored", command=("report.py", "ladder", "--attempts", *SCORE), after=_RESUMED),
        Step(
            name="replayed",
            command=(*("harness.py", "-m", "replay:ladder", "-t", "add-one", "-t", "add-two"), *ONE_BY_ONE),
            after=_RESUMED,
        ),
        Step(name="foreign", command=("report.py", *FOREIGN, "--fail-under", "60", *EXPORTS, *SCORE)),
        Step(name="broken", command=("report.py", "broken.jsonl", "-b", "bench", *SCORE)),
        Step(name="unanswered", command=UNANSWERED),
        Step(name="grid", command=GRID),
        Step(name="grid-report", command=("report.py", "grid", *SCORE), after=("grid",)),
        Step(
            name="compared",
            command=("report.py", "--compare", "ladder", "grid--replay-replies-first.jsonl--whole", *SCORE),
            after=(*_RESUMED, "scored", "grid"),
        ),
    )
}


def write_inputs(folder: Path) -> None:
    """Write four tasks, the answers of three models, and predictions that were made elsewhere."""
    modules = ("add_four", "add_one", "add_three", "add_two")
    for module in modules:
        write_exercise(folder / "bench", module.replace("_", "-"))
    replies = folder / "replies"
    replies.mkdir()
    four, one, three, two = modules
    first = {four: reply(RIGHT, "add_four.py"), one: reply(WRONG, "add_one.py"), three: reply(WRONG, "add_three.py")}
    _write_model(replies / "first.jsonl", {**first, two: "I would simply add the two numbers."}, cost=0.001)
    second = {one: _search_replace("add_one.py", RIGHT), three: _search_replace("add_three.py", WRONG)}
    _write_model(replies / "second.jsonl", {**second, two: _search_replace("add_two.py", RIGHT)}, cost=0.25)
    third = {four: _search_replace("add_four.py", RIGHT), two: reply(RIGHT, "add_two.py")}
    _write_model(replies / "third.jsonl", third, cost=0.03)
    patches = {four: _patch(four, RIGHT), one: _patch(one, WRONG), three: "", two: _patch(two, RIGHT, stub="    ...")}
    lines = [_prediction(module, patch) for module, patch in patches.items()]
    write_replies(folder / "foreign.jsonl", *lines)
    write_replies(folder / "broken.jsonl", lines[0], lines[0], {"instance_id": "aider_python_add_two"}, "no object")


def _write_model(file: Path, texts: Mapping[str, str], cost: float) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "cost": cost, "repeat": True}
    write_replies(file, *({"match": f"{module}.py", "text": text, **usage} for module, text in texts.items()))


def _search_replace(path: str, content: str) -> str:
    return f"{path}\n```python\n<<<<<<< SEARCH\n{STUB}=======\n{content}>>>>>>> REPLACE\n```\n"


def _patch(module: str, content: str, stub: str = "    pass") -> str:
    head, body = content.splitlines()
    path = f"{module}.py"
    lines = (f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}", "@@ -1,2 +1,2 @@")
    return "".join(f"{line}\n" for line in (*lines, f" {head}", f"-{stub}", f"+{body}"))


def _prediction(module: str, patch: str) -> dict[str, str]:
    return {"instance_id": f"aider_python_{module}", "model_name_or_path": "elsewhere", "model_patch": patch}


def state(folder: Path) -> dict[str, str]:
    """Return all files that a run left in a folder, pages reduced, by their names.

    What a killed program leaves in hidden files is there to be removed.
    """
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
    names = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: _content(path) for name, path in names.items() if name.split("/")[0] not in INPUTS}


def _content(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return masks.reduced(text) if path.suffix == ".html" and text.startswith("<!doctype") else text


def recorded(names: Iterable[str]) -> dict[str, str]:
    """Return the state after these steps, as it was recorded."""
    found: dict[str, str] = {}
    for name in names:
        found.update(state(RECORDED / name))
        found.pop(TERMINAL)
    return found


def terminal(name: str) -> str:
    """Return what a step printed and ended with when it was recorded."""
    return (RECORDED / name / TERMINAL).read_text(encoding="utf-8")


def lay_out(step: Step, folder: Path) -> None:
    """Make the folder as it was before a step."""
    write_inputs(folder)
    for name, text in recorded(step.after).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(PLACE, str(folder)), encoding="utf-8")


def perform(step: Step, folder: Path, cache: Path) -> str:
    """Run the command of a step in its folder, and return what it printed and ended with, in one text."""
    command = [sys.executable, str(PROJECT / step.command[0]), *step.command[1:]]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=_environment(folder, cache), stdout=pipe, stderr=pipe, text=True
    ) as process:
        if step.killed_at:
            _kill(process, folder / f"predictions/ladder/journal/{step.killed_at}.jsonl")
        stdout, stderr = process.communicate(timeout=600)
    shown = "\n".join(
        (f"$ python {' '.join(step.command)}", stdout, "---- stderr", stderr, f"---- exit code {process.returncode}\n")
    )
    return shown.replace(str(folder), PLACE)


def _environment(folder: Path, cache: Path) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("RETRIAL_")}
    return {**others, "RETRIAL_HOME": str(folder), "RETRIAL_CACHE": str(cache), "COLUMNS": "100"}


def _kill(process: subprocess.Popen[str], journal: Path) -> None:
    """Kill the program while the tests run for an answer that is on disk."""
    while not (journal.exists() and _answered(journal.read_text(encoding="utf-8"))):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.005)
            raise AssertionError("it ended before it was killed")
    process.send_signal(signal.SIGKILL)


def _answered(journal: str) -> bool:
    """Whether the second attempt has an answer; the last line may be half written."""
    whole = journal.splitlines()[: journal.count("\n")]
    return any(line["event"] == "reply" and line["attempt"] == 2 for line in map(json.loads, whole))


def scrubbed(text: str, folder: Path) -> str:
    """Replace names of this machine by placeholders."""
    text = re.sub(r'"(host|hostname)": "[^"]*"', r'"\1": "host"', text.replace(str(folder), PLACE))
    text = re.sub(r'\bhostname="[^"]*"', 'hostname="host"', text)
    return re.sub(r'"system": "[^"]*"', '"system": "Linux"', text)


def record(step: Step, folder: Path, cache: Path) -> None:
    """Perform a step, and store what it printed and which files it added or changed."""
    lay_out(step, folder)
    before = state(folder)
    shown = perform(step, folder, cache)
    after = state(folder)
    assert not before.keys() - after.keys(), "a recording cannot tell that a file was removed"
    changed = {name: scrubbed(text, folder) for name, text in after.items() if before.get(name) != text}
    sealed = [name for name in changed if "/journal/" in name and changed[name] != after[name]]
    assert not sealed, f"these have checksums, and cannot be scrubbed: {sealed}"
    for name, text in {TERMINAL: shown, **changed}.items():
        path = RECORDED / step.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    for name in sys.argv[1:] or STEPS:
        step = STEPS[name]
        print(step.name)
        shutil.rmtree(RECORDED / name, ignore_errors=True)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve() / "run"
            folder.mkdir()
            record(step, folder, Path(temporary).resolve() / "cache")


if __name__ == "__main__":
    main()
