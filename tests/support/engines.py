"""For tests of images: a small image of programs of this host, a registry, and a wire to the engine to cut."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from docker.api import APIClient
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import APIError, ImageNotFound
from docker.utils import kwargs_from_env

from retrial.sandboxes import docker
from retrial.types import Environment

PATIENCE = 120.0
PROGRAMS = ("sh", "tar", "sleep", "cat", "true")
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@contextmanager
def engine() -> Iterator[APIClient]:
    with closing(APIClient(version="auto", timeout=120, **kwargs_from_env())) as client:
        yield client


def small_image(client: APIClient, name: str, content: bytes = b"") -> str:
    """An image with a shell and a file `/tree/content`; a few megabytes, and more with more content. Gives its id."""
    repository, _, tag = name.rpartition(":")
    client.import_image_from_data(_root(content), repository=repository, tag=tag)
    found: Any = client.inspect_image
    return str(found(name)["Id"])


def running(client: APIClient, pid: int, word: str) -> str:
    """The container of that process in which a command with this word runs; waits for it, but not for ever."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for container in client.containers(filters={"label": f"{docker.PID}={pid}"}):
            # It may be gone by now, or have no process yet.
            with suppress(APIError):
                if any(word in process[-1] for process in client.top(container["Id"])["Processes"] or ()):
                    return str(container["Id"])
    raise AssertionError(f"no container of {pid} ran '{word}' within {PATIENCE} s")


def remove(client: APIClient, *names: str) -> None:
    for name in names:
        with suppress(ImageNotFound):
            client.remove_image(name, force=True)


def tree(image: str, recipe: str = "") -> Environment:
    """An environment whose image holds the task's files."""
    return Environment(name=image.partition("/")[2], image=image, language="", tree="/tree", recipe=recipe)


def _root(content: bytes) -> bytes:
    found = {f"/bin/{name}": shutil.which(name) or "" for name in PROGRAMS}
    for path in tuple(found.values()):
        needed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        found |= {library: library for library in re.findall(r"(/\S+) \(0x", needed)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, path in found.items():
            _add(archive, name, Path(path).read_bytes(), 0o755)
        _add(archive, "/tree/content", content, 0o644)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name.lstrip("/"))
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


class Registry:
    """As much of a registry as a pull needs, on a port of this host. It can be busy, and it can forget."""

    def __init__(self) -> None:
        self.busy: list[str] = []
        """What it says, in turn, to who asks too often."""
        self.asked: list[str] = []
        self.meeting: threading.Barrier | None = None
        """Where those who ask for different images wait for each other, once."""
        self._blobs: dict[str, tuple[str, bytes]] = {}
        self._manifests: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Registry:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, client: APIClient, image: str, name: str) -> str:
        """Take a local image in as `repository:tag`; gives what to pull."""
        with tarfile.open(fileobj=io.BytesIO(b"".join(client.get_image(image)))) as archive:
            [listed] = json.loads(_member(archive, "manifest.json"))
            config = self._keep(CONFIG, _member(archive, listed["Config"]))
            layers = [self._keep(LAYER, _member(archive, layer)) for layer in listed["Layers"]]
        content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        manifest = json.dumps(content).encode()
        repository, _, tag = name.rpartition(":")
        self._manifests[f"{repository}/{tag}"] = manifest
        self._manifests[f"{repository}/{_digest(manifest)}"] = manifest
        return f"{self.host}/{name}"

    def forget(self, name: str) -> None:
        self._manifests.pop(name.replace(":", "/", 1))

    def digests(self) -> set[str]:
        return {name.rpartition("/")[2] for name in self._manifests if "sha256:" in name}

    def _keep(self, kind: str, content: bytes) -> dict[str, object]:
        self._blobs[_digest(content)] = (kind, content)
        return {"mediaType": kind, "size": len(content), "digest": _digest(content)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.asked.append(self.path)
                status, kind, content = registry.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                if kind == MANIFEST:
                    self.send_header("Docker-Content-Digest", _digest(content))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_HEAD = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and content."""
        if path.rstrip("/") == "/v2":
            return 200, "application/json", b"{}"
        repository, _, last = path.removeprefix("/v2/").rpartition("/")
        repository, _, kind = repository.rpartition("/")
        if kind == "manifests" and self.meeting and self.asked.count(path) == 1:
            self.meeting.wait()
        if kind == "manifests" and self.busy:
            return 429, "application/json", _error("TOOMANYREQUESTS", self.busy.pop(0))
        if kind == "manifests" and f"{repository}/{last}" in self._manifests:
            return 200, MANIFEST, self._manifests[f"{repository}/{last}"]
        if kind == "blobs" and last in self._blobs:
            return 200, "application/octet-stream", self._blobs[last][1]
        return 404, "application/json", _error("MANIFEST_UNKNOWN", "manifest unknown")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file
    return file.read()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


class Wire:
    """A way to the real engine that can be cut: to its client that is what an engine's death looks like."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "engine.sock"
        self.address = f"unix://{self._path}"
        self._target = (os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET).rpartition("unix://")[2]
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Wire:
        self.mend()
        return self

    def mend(self) -> None:
        """As an engine that is back."""
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen()
        self._ends = [listener]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def __exit__(self, *exception: object) -> None:
        self.cut()

    def cut(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._ends += [client, server]
                server.connect(self._target)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
