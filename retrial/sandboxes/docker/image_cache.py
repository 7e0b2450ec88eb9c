"""Images that hold a task's tree: hundreds, a gigabyte or more each. What we brought is written down, and may go.

The ledger (`images.json` in the cache) names each with its id and the digest that its registry knows it by. An image
that went keeps its line: cached verdicts stay good, and when it is needed again it comes back as it was.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from docker.api import APIClient
from docker.errors import APIError
from docker.utils import parse_repository_tag

from retrial.errors import EnvironmentMissing, UsageError
from retrial.sandboxes.docker import images as docker_images
from retrial.store.json_io import read_json, to_json
from retrial.system import paths
from retrial.system.files import write_data
from retrial.system.locks import file_lock
from retrial.types import Environment

LEDGER = "images.json"
LOCKS = "images"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedImage:
    """One image, as it was when it was last used."""

    id: str
    digest: str = ""
    """As its registry has it; empty for one that was built."""
    size: int = 0
    used: float = 0.0
    engine: str = ""
    """The engine that has it because we brought it; empty when it went, or when it is not ours to remove."""


Ledger = dict[str, CachedImage]
UNKNOWN = CachedImage(id="")


def held(image: str) -> AbstractContextManager[int]:
    """Meanwhile no program removes the image to make room."""
    return file_lock(_lock_path(image), shared=True)


def refuse_too_small(disk_gb: float, client: APIClient, images: Iterable[str]) -> None:
    """Raise UsageError if an image whose size is known does not fit by itself."""
    known, quota = _read(), _bytes(disk_gb)
    entries = {image: known.get(image) or _look(client, image) for image in images}
    sizes = {image: entry.size for image, entry in entries.items() if entry}
    largest = max(sizes, key=lambda image: sizes[image], default="")
    if largest and (size := sizes[largest]) > quota:
        raise UsageError(
            f"--disk {disk_gb:g} is too small: the image {largest} alone has {docker_images.size(size)}. "
            f"Give --disk {math.ceil(size / 1e9)} or more."
        )


def _bytes(disk_gb: float) -> int:
    return int(disk_gb * 1e9)


class Shelf:
    """The images that we brought to one engine, within a quota if there is one."""

    def __init__(self, disk_gb: float | None) -> None:
        self._quota = None if disk_gb is None else _bytes(disk_gb)
        self._engine = ""
        self._crowded = False

    def remembered(self, image: str) -> str:
        """The id that the image had when it was last used; empty when it is not known."""
        return _read().get(image, UNKNOWN).id

    def ensure(self, client: APIClient, environment: Environment, say: Callable[[str], None]) -> None:
        """Bring the image unless it is there.

        Raises: EnvironmentMissing.
        """
        image = environment.image
        if found := _look(client, image):
            _note(image, found, say)
            return
        known = _read().get(image, UNKNOWN)
        self._make_room(client, image, known.size, say)
        docker_images.bring(client, environment, say, known.digest)
        found = _look(client, image)
        if not found:
            raise EnvironmentMissing(f"The image {image} could not be had: the engine gave no reason.")
        with _ledger() as entries:
            entries[image] = replace(found, engine=self._engine_id(client))
        # Only now is it known how large a new one is.
        self._make_room(client, image, 0, say)

    def _make_room(self, client: APIClient, wanted: str, more: int, say: Callable[[str], None]) -> None:
        """Remove what was not used for the longest time, until the others and `more` fit."""
        if self._quota is None:
            return
        engine = self._engine_id(client)
        with _ledger() as entries:
            ours = {name: entry for name, entry in entries.items() if entry.engine == engine}
            taken = sum(entry.size for entry in ours.values()) + more
            for name in sorted(ours, key=lambda each: ours[each].used):
                if taken <= self._quota:
                    return
                if name != wanted and _remove(client, name, ours[name].id):
                    if ours[name].digest:
                        entries[name] = replace(ours[name], engine="")
                    else:
                        # Built anew it will be another one: nothing to remember it by.
                        del entries[name]
                    taken -= ours[name].size
                    say(f"Removed the image {name} ({docker_images.size(ours[name].size)}) to stay within --disk")
        if taken > self._quota and not self._crowded:
            self._crowded = True
            used = docker_images.size(taken)
            say(f"note: images in use take {used}, more than --disk allows; none of them can go now")

    def _engine_id(self, client: APIClient) -> str:
        if not self._engine:
            self._engine = str(client.info().get("ID") or "unknown")
        return self._engine


def _look(client: APIClient, image: str) -> CachedImage | None:
    seen = docker_images.facts(client, image)
    if not seen:
        return None
    repository = parse_repository_tag(image)[0]
    digests = [each.rpartition("@") for each in seen.get("RepoDigests") or ()]
    named = [digest for name, _, digest in digests if f"/{repository}".endswith(f"/{name}")]
    return CachedImage(id=seen["Id"], digest=named[0] if named else "", size=seen["Size"], used=time.time())


def _note(image: str, found: CachedImage, say: Callable[[str], None]) -> None:
    """An image that is there is used as it is, but not without a word if it is another than before."""
    with _ledger() as entries:
        known = entries.get(image)
        if known and known.id == found.id:
            entries[image] = replace(known, used=found.used)
            return
        # Somebody else brought this one, so it is not ours to remove.
        entries[image] = found
    if known:
        say(f"note: the image {image} is another one than before ({known.id[:19]}… is now {found.id[:19]}…)")


def _remove(client: APIClient, image: str, identity: str) -> bool:
    """True when it is gone; False for one that somebody uses."""
    now = _look(client, image)
    if now is None or now.id != identity:
        # Not the one that we brought: it is no longer ours.
        return True
    try:
        with file_lock(_lock_path(image), wait=False):
            # Without force: the engine refuses while any container, running or not, is made from it.
            client.remove_image(image)
    except (BlockingIOError, APIError):
        return False
    return True


def _lock_path(image: str) -> Path:
    name = hashlib.sha256(image.encode()).hexdigest()[:16]
    return paths.cache() / LOCKS / f"{name}.lock"


@contextmanager
def _ledger() -> Iterator[Ledger]:
    """All lines, to be changed; nobody else changes them meanwhile."""
    with file_lock(paths.cache() / LOCKS / "ledger.lock"):
        entries = _read()
        yield entries
        write_data(paths.cache() / LEDGER, to_json(dict(sorted(entries.items()))), sure=True)


def _read() -> Ledger:
    path = paths.cache() / LEDGER
    if not path.exists():
        return {}
    try:
        return {name: CachedImage(**line) for name, line in read_json(path).items()}
    except (UsageError, AttributeError, TypeError):
        # Torn or of another version: then nothing here is ours to remove.
        return {}
