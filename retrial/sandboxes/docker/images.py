"""Images for the engine: which one an environment means, whether it can be had, and making it."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import tarfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from docker.api import APIClient
from docker.errors import APIError, DockerException, ImageNotFound, StreamParseError
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from retrial.errors import EnvironmentMissing, UsageError
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

_building = threading.Lock()


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
    return _tar(files)


def _tar(files: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


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
    from retrial.sandboxes.docker import pulls

    image = name(environment)
    if not own(environment):
        if not identity(client, image):
            pulls.bring(client, environment, say)
        return
    with _building:
        if identity(client, image):
            return
        say(f"Building the image {image} …")
        try:
            follow(_build(client, environment, image))
        except FAILURES as error:
            raise EnvironmentMissing(f"The image {image} could not be had: {words(error)}") from error
        if not identity(client, image):
            raise EnvironmentMissing(f"The image {image} could not be had: the engine gave no reason.")


def _build(client: APIClient, environment: Environment, image: str) -> Iterable[Mapping[str, Any]]:
    built: Iterable[Mapping[str, Any]] = client.build(
        fileobj=io.BytesIO(_context(environment.image)),
        custom_context=True,
        tag=image,
        target=environment.image,
        buildargs={"BASE": base()},
        # Packages are fetched as the host would fetch them, through its resolver.
        network_mode="host",
        rm=True,
        forcerm=True,
        decode=True,
    )
    return built


def follow(steps: Iterable[Mapping[str, Any]]) -> None:
    """To the end, or to the first error."""
    lines: deque[str] = deque(maxlen=LAST_LINES)
    for step in steps:
        lines.extend(str(step.get("stream", "")).split("\n"))
        if "error" in step:
            said = " / ".join(line.strip() for line in lines if line.strip())
            raise DockerException(f"{step['error']} ({said})" if said else str(step["error"]))
