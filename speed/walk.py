"""Count the modules of ours with a call on the way of one demo task, in the worker and in the whole program.

A call while a module is being imported does not count. Upward calls, into a folder of a higher layer, are listed with
the protocol of `retrial/protocols.py` that the called object implements, or with `part` where the registry opened it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = PROJECT / "retrial"
TASK = "even-steven"
WORKERS = ("retrial.predict.worker", "retrial.score.worker")
"""Whose `__call__` is the work of one task."""


@dataclass(slots=True)
class Trace:
    """What was called."""

    program: set[str] = field(default_factory=set)
    worker: set[str] = field(default_factory=set)
    upwards: set[tuple[str, str, str]] = field(default_factory=set)
    """Caller, called function, and by what it is reached."""


class Tracer:
    """Follows the calls of this process, in all its threads."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._modules: dict[CodeType, str] = {}
        self._thread_start = threading.Thread.start

    @contextmanager
    def following(self) -> Iterator[Trace]:
        # A thread that a worker starts belongs to the worker.
        threading.Thread.start = self._start_thread()  # type: ignore[method-assign, assignment]
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            yield self.trace
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            threading.Thread.start = self._thread_start  # type: ignore[method-assign]

    def _start_thread(self) -> Callable[[threading.Thread], None]:
        def start(thread: threading.Thread) -> None:
            thread.__dict__["of_worker"] = self._is_working(sys._getframe(1))
            self._thread_start(thread)

        return start

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        module = self._module(frame)
        if not module or self._is_importing(frame):
            return
        self.trace.program.add(module)
        if module not in self.trace.worker and self._is_working(frame):
            self.trace.worker.add(module)
        caller = next(filter(None, map(self._module, _callers(frame))), "")
        # A generator is a value that the lower layer reads.
        if caller and _rank(module) > _rank(caller) and not frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.trace.upwards.add((caller, f"{module}.{frame.f_code.co_qualname}", _reached_by(frame)))

    def _module(self, frame: FrameType) -> str:
        code = frame.f_code
        if code not in self._modules:
            self._modules[code] = _module_of(code.co_filename)
        return self._modules[code]

    def _is_working(self, frame: FrameType) -> bool:
        frames = [frame, *_callers(frame)]
        called = any(each.f_code.co_name == "__call__" and self._module(each) in WORKERS for each in frames)
        return called or bool(threading.current_thread().__dict__.get("of_worker"))

    def _is_importing(self, frame: FrameType) -> bool:
        return any(each.f_code.co_name == "<module>" and self._module(each) for each in _callers(frame))


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the frames that are waiting for this one, the nearest first."""
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _module_of(file: str) -> str:
    path = Path(file)
    if path.suffix != ".py" or not path.is_relative_to(PACKAGE):
        return ""
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def _rank(module: str) -> int:
    from tests.test_layers import folder_of, rank_of

    return rank_of(folder_of(module))


def _reached_by(frame: FrameType) -> str:
    """Return the protocol that the called object implements."""
    from retrial import chat, protocols, types

    name, owner = frame.f_code.co_name, frame.f_locals.get("self")
    if name == "make" and "make" in frame.f_globals:
        return "part"
    members = [member for module in (protocols, types, chat) for member in inspect.getmembers(module, inspect.isclass)]
    kinds = [kind for _, kind in members if getattr(kind, "_is_protocol", False)]
    fitting = [
        kind.__name__
        for kind in kinds
        if name in vars(kind)
        and all(hasattr(owner, verb) for verb in vars(kind) if _is_public_verb(kind, verb))
        and (name != "__call__" or vars(kind)[name].__code__.co_argcount == frame.f_code.co_argcount)
    ]
    return fitting[0] if fitting else "-"


def _is_public_verb(kind: type, name: str) -> bool:
    return callable(vars(kind)[name]) and (not name.startswith("_") or name == "__call__")


def follow(script: str, arguments: Sequence[str]) -> Trace:
    """Run one of the two programs in this process."""
    sys.argv = [script, *arguments]
    with Tracer().following() as trace:
        try:
            runpy.run_path(str(PROJECT / script), run_name="__main__")
        except SystemExit as ended:
            assert ended.code == 0, f"{script} ended with {ended.code}"
    return trace


def replies(path: Path) -> Path:
    """Write the replies of a model that is wrong first, and right after it has seen the tests fail."""
    solution = (PROJECT / "tasks/demo/python/exercises/practice" / TASK / ".meta/example.py").read_text("utf-8")
    name = f"{TASK.replace('-', '_')}.py"
    texts = ["pass\n", solution]
    path.write_text("".join(json.dumps({"text": f"{name}\n````\n{text}````\n"}) + "\n" for text in texts))
    return path


def arguments_of(phase: int, home: Path) -> tuple[str, list[str]]:
    if phase == 2:
        return "report.py", ["walk", "--sandbox", "bwrap"]
    model = f"replay/{replies(home / 'replies.jsonl')}"
    chosen = ["--run", "walk", "--benchmark", "demo-python", "-t", f"python/{TASK}", "-m", model]
    return "harness.py", [*chosen, "--tries", "1", "--sandbox", "bwrap"]


def show(phase: int, trace: Trace, *, listed: bool) -> None:
    print(f"phase {phase}: {len(trace.worker)} modules in the worker, {len(trace.program)} in the whole program")
    if listed:
        for module in sorted(trace.program):
            print(f"  {'worker' if module in trace.worker else 'driver'} {module}")
    for caller, called, reached in sorted(trace.upwards):
        print(f"  up: {caller} -> {called} ({reached})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--list", action="store_true", help="name the modules")
    parser.add_argument("--phase", type=int, choices=(1, 2), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        show(options.phase, follow(*arguments_of(options.phase, Path(os.environ["RETRIAL_HOME"]))), listed=options.list)
        return
    with tempfile.TemporaryDirectory() as home:
        for phase in (1, 2):
            command = [sys.executable, "-m", "speed.walk", "--phase", str(phase), *(["--list"] * options.list)]
            # A process each, as the two phases are; its own output comes first.
            own = {"RETRIAL_HOME": home, "RETRIAL_CACHE": f"{home}/cache"}
            subprocess.run(command, cwd=PROJECT, env={**os.environ, **own}, check=True)


if __name__ == "__main__":
    main()
