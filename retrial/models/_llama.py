"""llama.cpp inside this process, on a loopback port that speaks the OpenAI protocol.

One request at a time, without reuse of earlier prompts: reuse changes how a prompt is cut into batches, which changes
the last bits of the numbers, which changes replies; and a second slot was measured to win nothing on two cores.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Any

from retrial.errors import ModelError

CONTEXT_TOKENS = 8192


class Server:
    """One loaded file. Hold `turn` while asking."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.turn = threading.Lock()
        self.url = f"{native.listening_address}/v1"

    def stop(self) -> None:
        self._native = None  # its destructor ends the native threads


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
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads(_cores())
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
