"""Brings images that others made: from their registry, with patience, or else by the task's own recipe."""

from __future__ import annotations

import functools
import io
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from docker.api import APIClient
from docker.errors import DockerException
from docker.utils import parse_repository_tag

from retrial.errors import EnvironmentMissing
from retrial.sandboxes.docker import images
from retrial.types import Environment

AT_ONCE = 4
GOES = 5
FIRST_PAUSE = 15.0
LONGEST_PAUSE = 600.0
BUILD_SECONDS = 7200.0

BUSY = re.compile(r"toomanyrequests|too many requests|\b429\b", re.IGNORECASE)
GONE = re.compile(r"manifest unknown|not found", re.IGNORECASE)
RETRY_AFTER = re.compile(r"retry[- ]after:?\s*([0-9.]+)\s*(µs|us|ms|s|m|h)?", re.IGNORECASE)
SECONDS = {"µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
HEREDOC = re.compile(r"^\s*(?:RUN|COPY|ADD)\b.*<<-?\s*[\"']?\w", re.MULTILINE)

_slots = threading.Semaphore(AT_ONCE)


def bring(client: APIClient, environment: Environment, say: Callable[[str], None], digest: str = "") -> None:
    """Have the image here: by this digest if one is given and still to be had.

    Raises: EnvironmentMissing.
    """
    image = environment.image
    with _slots:
        begun = time.monotonic()
        say(f"Pulling {image} …")
        try:
            _pull(client, image, digest, say)
        except images.FAILURES as error:
            _build(client, environment, say, f"The image {image} could not be had: {images.words(error)}")
        found = images.facts(client, image)
        say(f"{image} is here ({size(found.get('Size', 0))}, {time.monotonic() - begun:.0f} s)")


def size(number: int) -> str:
    """Bytes, for people."""
    return f"{number / 1e9:.1f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"


def _pull(client: APIClient, image: str, digest: str, say: Callable[[str], None]) -> None:
    repository, tag = parse_repository_tag(image)
    if digest and not image.endswith(digest):
        try:
            _patiently(client, repository, digest, say)
        except images.FAILURES as error:
            if not GONE.search(str(error)):
                raise
            say(f"note: {image} is no longer to be had as it was ({digest[:19]}…): it is pulled as it is now")
        else:
            client.tag(f"{repository}@{digest}", repository, tag or "latest", force=True)
            return
    _patiently(client, repository, tag or "latest", say)


def _patiently(client: APIClient, repository: str, tag: str, say: Callable[[str], None]) -> None:
    """A registry that is asked too often says so; anything else is an error at once."""
    pause = FIRST_PAUSE
    for left in reversed(range(GOES)):
        try:
            steps: Iterable[Mapping[str, Any]] = client.pull(repository, tag=tag, stream=True, decode=True)
            images.follow(steps)
            return
        except DockerException as error:
            if not left or not _busy(error):
                raise
            asked = _retry_after(error)
            wait = min(pause if asked is None else asked, LONGEST_PAUSE)
            say(f"The registry of {repository} is asked too often: again in {wait:.1f} s ({left} goes left)")
        time.sleep(wait)
        pause *= 2


def _busy(error: DockerException) -> bool:
    return getattr(getattr(error, "response", None), "status_code", 0) == 429 or bool(BUSY.search(str(error)))


def _retry_after(error: DockerException) -> float | None:
    """Seconds, if anybody has said so: in a header, or in the registry's own words that the engine hands on."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    match = RETRY_AFTER.search(f"retry-after: {headers['Retry-After']}" if "Retry-After" in headers else str(error))
    try:
        return float(match[1]) * SECONDS[(match[2] or "s").lower()] if match else None
    except ValueError:
        return None


def _build(client: APIClient, environment: Environment, say: Callable[[str], None], why: str) -> None:
    """By the task's own Dockerfile, where it has one; `why` says why it was not pulled."""
    if not environment.recipe:
        raise EnvironmentMissing(why)
    say(f"{why}; building it from the task's own Dockerfile …")
    try:
        if _has_buildx():
            _build_by_cli(environment)
        elif HEREDOC.search(environment.recipe):
            raise DockerException("it has heredocs, for which the docker command needs its plugin buildx")
        else:
            images.follow(_build_by_api(client, environment))
    except images.FAILURES as error:
        raise EnvironmentMissing(f"{why}; and its Dockerfile could not be built: {images.words(error)}") from error


@functools.cache
def _has_buildx() -> bool:
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode == 0


def _build_by_cli(environment: Environment) -> None:
    command = ["docker", "buildx", "build", "--load", "--progress", "plain", "--network", "host"]
    try:
        done = subprocess.run(
            [*command, "--tag", environment.image, "-"],
            input=environment.recipe.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise DockerException(f"it took longer than {BUILD_SECONDS:.0f} s") from error
    if done.returncode:
        lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise DockerException(" / ".join(lines[-images.LAST_LINES :]))


def _build_by_api(client: APIClient, environment: Environment) -> Iterable[Mapping[str, Any]]:
    recipe = io.BytesIO(environment.recipe.encode())
    built: Iterable[Mapping[str, Any]] = client.build(
        fileobj=recipe, tag=environment.image, network_mode="host", rm=True, forcerm=True, decode=True
    )
    return built
