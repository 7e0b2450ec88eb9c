"""llama.cpp inside this process, on a loopback port that speaks the OpenAI protocol.

Without reuse of earlier prompts: reuse changes how a prompt is cut into batches, which changes the last bits of the
numbers, which changes replies. Requests are batched where there are cores for it; on two cores batching was measured
to win nothing (71 tokens a second with one slot, 57 to 76 with two to four).
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrial.errors import ModelError
from retrial.models.openai import OpenAIModel

CONTEXT_TOKENS = 8192


class Server:
    """One loaded file; ask it only in a `turn`."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._slots = threading.Semaphore(slots(_cores()))
        self.busy = False
        """Somebody has asked; for those who must know that a question is under way."""
        self.url = f"{native.listening_address}/v1"
        self.clients: weakref.WeakSet[OpenAIModel] = weakref.WeakSet()

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._slots:
            self.busy = True
            yield

    def stop(self) -> None:
        # The destructor ends the native threads, and waits for ever for one that has an open request.
        for client in list(self.clients):
            client.close()
        self._native = None


_servers: dict[tuple[int, Path], Server] = {}
_starting = threading.Lock()


def server(path: Path) -> Server:
    """This process's server for a GGUF file, started if it is not.

    Raises: ModelError.
    """
    # The process's id is part of the key: threads of a server do not survive a fork.
    key = (os.getpid(), path.resolve())
    with _starting:
        if key not in _servers:
            if not _servers:
                atexit.register(_stop_all)
            _servers[key] = Server(_start(path))
        return _servers[key]


def _stop_all() -> None:
    for (pid, _), running in _servers.items():
        if pid == os.getpid():
            running.stop()


def _start(path: Path) -> Any:
    native = _import()
    params = native.CommonParams()
    params.model.path = str(path)
    params.n_parallel = slots(_cores())
    params.n_ctx = CONTEXT_TOKENS * params.n_parallel
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads(_cores())
    # Reading a prompt is coarse work: its threads seldom meet, so a busy neighbour hardly slows them.
    params.cpuparams_batch.n_threads = min(8, _cores())
    params.verbosity = 0
    params.ui = False
    params.endpoint_slots = False
    params.fit_params = False
    params.warmup = False
    try:
        return native.Server(params)
    except RuntimeError as error:
        raise ModelError(
            f"llama.cpp cannot load {path}: is it a whole GGUF file, and is there memory for it?"
        ) from error


def slots(cores: int) -> int:
    """Requests answered at once."""
    return max(1, min(4, cores // 4))


def threads(cores: int) -> int:
    """One core is left to others: the threads meet hundreds of times for each token and wait for the slowest."""
    return max(1, min(4, cores - 1))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _import() -> Any:
    # Waiting threads of OpenMP must sleep, not spin: spinning took 50 times as long on a busy machine. It reads its
    # settings when it is loaded, and processes that we start must not inherit this one.
    policy = "OMP_WAIT_POLICY"
    mine = policy not in os.environ
    os.environ.setdefault(policy, "passive")
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelError(f"Model 'local' needs the package xllamacpp, which cannot be loaded: {error}.") from error
    finally:
        if mine:
            del os.environ[policy]
    return xllamacpp
