"""What is written down of a finished task, by the driver alone; in memory stays only what is counted in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from retrial.attempts import Prediction
from retrial.errors import NotMeasured
from retrial.store import transcript
from retrial.store.events import TaskNotMeasured
from retrial.store.records import PredictionSummary, prediction_record, summary
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.types import Task

WORKERS = 8
WAITING = 32
"""Pieces of work taken at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """What has come of phase 1 so far."""

    done: dict[str, PredictionSummary]
    unmeasured: dict[str, str]
    """Id → reason."""


def save_prediction(run: Run, task: Task, result: Prediction | Exception, so_far: RunProgress) -> None:
    """Safe to call from many threads."""
    why, journal = not_measured(result), run.journal(task.instance_id)
    chat = transcript.markdown(task.instance_id, state(result), journal.events())
    if isinstance(result, Prediction) and not why:
        record = prediction_record(result)
        run.write_prediction(task.instance_id, record, chat)
        so_far.done[task.instance_id] = summary(record)
    else:
        run.write_chat(task.instance_id, chat)
        journal.append(TaskNotMeasured(reason=why))
        so_far.unmeasured[task.instance_id] = why
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id)


def state(result: Prediction | Exception) -> str:
    """For people."""
    why = not_measured(result)
    if why or isinstance(result, Exception):
        return f"not measured: {why}"
    chosen = result.chosen
    found = "plausible" if chosen.plausible else "unverified" if chosen.unverified else "least bad"
    return f"{found}, attempt {chosen.number} of {len(result.attempts)} ({chosen.model})"


def not_measured(result: Prediction | Exception) -> str:
    """Why it may not be counted."""
    if isinstance(result, Prediction):
        return result.not_measured
    return str(result) if isinstance(result, NotMeasured) else f"{type(result).__name__}: {result}"


class WriterPool:
    """Bounded pool of threads that write finished work to disk.

    All that was taken is done when it ends; the first failure is raised where the next piece is taken, or then.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="retrial-abreast")
        self._room = threading.Semaphore(WAITING)
        self._failures: list[BaseException] = []

    def submit(self, work: Callable[[], object]) -> None:
        self._room.acquire()
        self._raise()
        self._pool.submit(work).add_done_callback(self._ended)

    def _ended(self, future: Future[object]) -> None:
        if error := future.exception():
            self._failures.append(error)
        self._room.release()

    def _raise(self) -> None:
        if self._failures:
            raise self._failures[0]

    def __enter__(self) -> WriterPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if error is None:
            self._raise()
