"""A model on this machine, no key, no cost: `-m local` is SmolLM2-135M-Instruct, `-m local/FILE.gguf` any GGUF file.

llama.cpp serves it inside this process and it is asked through the same client as every other model. The same
request with the same seed gives the same reply.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from retrial.chat import Reply, Request
from retrial.errors import ModelError, UsageError
from retrial.models import llama_server
from retrial.models.endpoints import Endpoint
from retrial.models.openai import OpenAIModel
from retrial.models.prices import Price
from retrial.models.retry import Patience
from retrial.models.weights import weights
from retrial.protocols import ModelContext

BUNDLED_REPLY_TOKENS = 256
"""The bundled model writes nothing longer that is right, but it can repeat itself until its context is full."""


class LocalModel:
    """Fetches, loads and serves at the first question."""

    def __init__(self, *, cache: Path, file: Path | None = None) -> None:
        self.name = f"local/{file}" if file else "local"
        self._cache = cache
        self._file = file
        self._lock = threading.Lock()
        self._ready: tuple[llama_server.Server, OpenAIModel] | None = None
        self._failed = ""

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when the weights cannot be had or loaded."""
        server, client = self._prepare()
        if self._file is None:
            request = replace(request, max_tokens=min(request.max_tokens, BUNDLED_REPLY_TOKENS))
        # The request's time starts when it is its turn: waiting for our own other requests is nobody's stalled reply.
        with server.turn():
            request.check_stop()
            return client.complete(request)

    def close(self) -> None:
        """Close the connection; the server stays, others may use it."""
        with self._lock:
            ready, self._ready = self._ready, None
        if ready is not None:
            ready[1].close()

    def _prepare(self) -> tuple[llama_server.Server, OpenAIModel]:
        with self._lock:
            if self._failed:  # once is enough: fetching in vain takes a minute, for every task
                raise ModelError(self._failed)
            if self._ready is None:
                self._ready = self._start()
            return self._ready

    def _start(self) -> tuple[llama_server.Server, OpenAIModel]:
        try:
            server = llama_server.server(self._file or weights(self._cache))
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
