"""A model on this machine, no key, no cost: `-m local` is SmolLM2-135M-Instruct, `-m local/FILE.gguf` any GGUF file.

llama.cpp serves it inside this process, on a loopback port that speaks the OpenAI protocol, and it is asked through the
same client as every other model. The same request with the same seed gives the same reply.

Without reuse of earlier prompts: reuse changes how a prompt is cut into batches, which changes the last bits of the
numbers, which changes replies. Requests are batched where there are cores for it; on two cores batching was measured
to win nothing (71 tokens a second with one slot, 57 to 76 with two to four).
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrial.chat import Reply, Request
from retrial.errors import ModelError, UsageError
from retrial.models.endpoints import Endpoint
from retrial.models.openai import OpenAIModel
from retrial.models.prices import Price
from retrial.models.retry import Patience
from retrial.models.weights import weights
from retrial.protocols import ModelContext

BUNDLED_REPLY_TOKENS = 256
"""The bundled model writes nothing longer that is right, but it can repeat itself until its context is full."""
CONTEXT_TOKENS = 8192


class LocalModel:
    """Fetches, loads and serves at the first question."""

    def __init__(self, *, cache: Path, file: Path | None = None) -> None:
        self.name = f"local/{file}" if file else "local"
        self._cache = cache
        self._file = file
        self._lock = threading.Lock()
        self._ready: tuple[Server, OpenAIModel] | None = None
        self._failed = ""

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when the weights cannot be had or loaded."""
        server, client = self._prepare()
        if self._file is None:
            request = replace(request, max_tokens=min(request.max_tokens, BUNDLED_REPLY_TOKENS))
        # The request's time starts when it is its turn: waiting for our own other requests is nobody's stalled reply.
        with server.turn:
            request.control.check_stop()
            return client.complete(request)

    def close(self) -> None:
        """Close the connection; the server stays, others may use it."""
        with self._lock:
            ready, self._ready = self._ready, None
        if ready is not None:
            ready[1].close()

    def _prepare(self) -> tuple[Server, OpenAIModel]:
        with self._lock:
            if self._failed:  # once is enough: fetching in vain takes a minute, for every task
                raise ModelError(self._failed)
            if self._ready is None:
                self._ready = self._start()
            return self._ready

    def _start(self) -> tuple[Server, OpenAIModel]:
        try:
            server = running_server(self._file or weights(self._cache))
        except ModelError as error:
            self._failed = str(error)
            raise
        endpoint = Endpoint(title="llama.cpp in this process", base_url=server.url, model="local")
        free = Price(prompt=0.0, completion=0.0)
        client = OpenAIModel(name=self.name, endpoint=endpoint, price=free, patience=Patience(first_share=1.0))
        server.clients.add(client)
        return server, client


def make(context: ModelContext) -> LocalModel:
    """Raises: UsageError when the named file is not there."""
    file = Path(context.name).expanduser() if context.name else None
    if file is not None and not file.is_file():
        raise UsageError(f"Model 'local/{context.name}': there is no file {file}.")
    return LocalModel(cache=Path(context.options.cache), file=file)


class Server:
    """One loaded file; ask it only in a `turn`."""

    def __init__(self, native: Any) -> None:
        self._native, self._pid = native, os.getpid()
        self.turn = threading.Semaphore(slots(_cores()))
        self.url = f"{native.listening_address}/v1"
        self.clients: weakref.WeakSet[OpenAIModel] = weakref.WeakSet()

    def stop(self) -> None:
        if self._pid != os.getpid():
            return
        # The destructor ends the native threads, and waits for ever for one that has an open request.
        for client in list(self.clients):
            client.close()
        self._native = None


_servers: dict[tuple[int, Path], Server] = {}
_starting = threading.Lock()


def running_server(path: Path) -> Server:
    """This process's server for a GGUF file, started if it is not.

    Raises: ModelError.
    """
    # The process's id is part of the key: threads of a server do not survive a fork.
    key = (os.getpid(), path.resolve())
    with _starting:
        if key not in _servers:
            _servers[key] = Server(_start(path))
            atexit.register(_servers[key].stop)
        return _servers[key]


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
    return len(os.sched_getaffinity(0))


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
