"""Images for the engine: which one an environment means, whether it can be had, and having it.

Ours are built. Those that others made come from their registry, with patience, or else by the task's own recipe.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from docker.api import APIClient
from docker.errors import APIError, DockerException, ImageNotFound, StreamParseError
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from retrial.errors import EnvironmentMissing, UsageError
from retrial.sandboxes.supervisor import tar
from retrial.types import Environment

FOLDER = Path(__file__).resolve().parents[3] / "docker"
BASE = "debian:trixie-slim"
STORE = "/opt/retrial"
ALL = "all"
"""The target that takes from every other."""
STAGE = re.compile(r"(^FROM \S+ AS (\w+)$)", re.MULTILINE)
LAST_LINES = 5
SIZES = {"python": 40, "javascript": 155, "go": 405, "rust": 805, "java": 305, "cpp": 520, "all": 1980}
"""MB that our images add to their base, as measured, for those who ask before they build."""

FAILURES = (DockerException, StreamParseError, HTTPError, OSError)
"""What the client lets through when an engine refuses, is gone, or stops in the middle of a word."""

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

_building = threading.Lock()
_slots = threading.Semaphore(AT_ONCE)


def base() -> str:
    return os.environ.get("RETRIAL_BASE_IMAGE") or BASE


def own(environment: Environment) -> bool:
    """A target of our Dockerfile, not the name of an image."""
    return not re.search("[/:]", environment.image)


def name(environment: Environment) -> str:
    """The image's name; ours carry what they are made from, so that a change makes a new one."""
    if not own(environment):
        return environment.image
    recipe = _context(environment.image) + f"\0{environment.image}\0{base()}".encode()
    return f"retrial-{environment.image}:{hashlib.sha256(recipe).hexdigest()[:12]}"


@functools.cache
def _context(target: str) -> bytes:
    """What the engine gets to build one target: no more than that needs, so that no other stage is built or matters.

    (Engines without BuildKit build every stage that comes before the target.)
    """
    head, *stages = STAGE.split((FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    texts = {stages[place + 1]: stages[place] + stages[place + 2] for place in range(0, len(stages), 3)}
    if target not in texts:
        raise UsageError(f"docker/Dockerfile has no target '{target}'; it has {', '.join(texts)}.")
    wanted = [name for name in texts if target == ALL or name == target]
    files = {"Dockerfile": (head + "".join(texts[name] for name in wanted)).encode()}
    for folder in wanted:
        for path in sorted((FOLDER / "prepare" / folder).glob("*")):
            files[f"prepare/{folder}/{path.name}"] = path.read_bytes()
    return tar((name, content, 0o644) for name, content in files.items())


def facts(client: APIClient, image: str) -> Mapping[str, Any]:
    """What the engine knows of a local image; empty when there is none of that name."""
    inspect: Any = client.inspect_image
    try:
        found: Mapping[str, Any] = inspect(image)
    except ImageNotFound:
        return {}
    return found


def identity(client: APIClient, image: str) -> str:
    """The id of a local image; empty when there is none of that name."""
    return str(facts(client, image).get("Id", ""))


def words(error: BaseException) -> str:
    """What the engine said, without where it was asked."""
    return str(getattr(error, "explanation", "") or error)


def state(client: APIClient, environment: Environment) -> str:
    """For people: there, or what must be had first."""
    image = name(environment)
    if identity(client, image):
        return f"ready (image {image})"
    size = f", about {SIZES[environment.image]} MB on top of its base" if environment.image in SIZES else ""
    return f"image {image} is missing and will be {'built' if own(environment) else 'pulled'}{size}"


def out_of_reach(client: APIClient, environment: Environment) -> str:
    """Why the image cannot be had, as far as that can be known without pulling or building; empty when it may be."""
    source = base() if own(environment) else environment.image
    if identity(client, name(environment)) or identity(client, source):
        return ""
    ask: Any = client.inspect_distribution
    try:
        ask(source)
    except (APIError, RequestException):
        help = " (scripts/engine-up can make it)" if source == BASE else ""
        return f"the image {source} is not here and no registry has it for us{help}."
    return ""


def ensure(client: APIClient, environment: Environment, say: Callable[[str], None]) -> None:
    """Build or pull the image unless it is there.

    Raises: EnvironmentMissing.
    """
    image = name(environment)
    if not own(environment):
        if not identity(client, image):
            bring(client, environment, say)
        return
    with _building:
        if identity(client, image):
            return
        say(f"Building the image {image} …")
        target = environment.image
        try:
            _build(client, image, _context(target), custom_context=True, target=target, buildargs={"BASE": base()})
        except FAILURES as error:
            raise EnvironmentMissing(f"The image {image} could not be had: {words(error)}") from error
        if not identity(client, image):
            raise EnvironmentMissing(f"The image {image} could not be had: the engine gave no reason.")


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
        except FAILURES as error:
            _build_by_recipe(client, environment, say, f"The image {image} could not be had: {words(error)}")
        found = facts(client, image)
        say(f"{image} is here ({size(found.get('Size', 0))}, {time.monotonic() - begun:.0f} s)")


def size(number: int) -> str:
    """Bytes, for people."""
    return f"{number / 1e9:.1f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"


def _pull(client: APIClient, image: str, digest: str, say: Callable[[str], None]) -> None:
    repository, tag = parse_repository_tag(image)
    if digest and not image.endswith(digest):
        try:
            _patiently(client, repository, digest, say)
        except FAILURES as error:
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
            follow(client.pull(repository, tag=tag, stream=True, decode=True))
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


def _build_by_recipe(client: APIClient, environment: Environment, say: Callable[[str], None], why: str) -> None:
    """By the task's own Dockerfile, where it has one; `why` says why it was not pulled."""
    if not environment.recipe:
        raise EnvironmentMissing(why)
    say(f"{why}; building it from the task's own Dockerfile …")
    recipe = environment.recipe.encode()
    try:
        if _has_buildx():
            _build_by_cli(environment.image, recipe)
        elif HEREDOC.search(environment.recipe):
            raise DockerException("it has heredocs, for which the docker command needs its plugin buildx")
        else:
            _build(client, environment.image, recipe)
    except FAILURES as error:
        raise EnvironmentMissing(f"{why}; and its Dockerfile could not be built: {words(error)}") from error


@functools.cache
def _has_buildx() -> bool:
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode == 0


def _build_by_cli(image: str, recipe: bytes) -> None:
    command = ["docker", "buildx", "build", "--load", "--progress", "plain", "--network", "host"]
    try:
        done = subprocess.run(
            [*command, "--tag", image, "-"],
            input=recipe,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise DockerException(f"it took longer than {BUILD_SECONDS:.0f} s") from error
    if done.returncode:
        lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise DockerException(" / ".join(lines[-LAST_LINES:]))


def _build(client: APIClient, image: str, content: bytes, **how: Any) -> None:
    # Packages are fetched as the host would fetch them, through its resolver.
    common: dict[str, Any] = {"network_mode": "host", "rm": True, "forcerm": True, "decode": True}
    follow(client.build(fileobj=io.BytesIO(content), tag=image, **common, **how))


def follow(steps: Iterable[Mapping[str, Any]]) -> None:
    """To the end, or to the first error."""
    lines: deque[str] = deque(maxlen=LAST_LINES)
    for step in steps:
        lines.extend(str(step.get("stream", "")).split("\n"))
        if "error" in step:
            said = " / ".join(line.strip() for line in lines if line.strip())
            raise DockerException(f"{step['error']} ({said})" if said else str(step["error"]))
