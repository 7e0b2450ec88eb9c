"""Images that hold a task's tree: brought when they are needed, and gone again when there is no room for them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from docker.api import APIClient
from docker.errors import DockerException

from retrial.errors import EnvironmentMissing, SandboxError, UsageError
from retrial.options import HarnessOptions
from retrial.protocols import Context
from retrial.sandboxes import bwrap, choose
from retrial.sandboxes.docker import Docker, image_cache, images
from retrial.sandboxes.prepare import prepare_all
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.system import paths
from retrial.types import Environment, Job
from tests.parts import PYTHON, ready_with_repository, require
from tests.support import image_task
from tests.support.engines import Registry, engine, remove, small_image, tree

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("home")]

GB = 1e9


class Shop:
    """A registry with small images in it, none of them here."""

    def __init__(self, client: APIClient, registry: Registry) -> None:
        self.client, self.registry = client, registry
        self.sizes: dict[str, int] = {}
        self.said: list[str] = []

    def offer(self, name: str) -> Environment:
        image = f"{self.registry.host}/retrial/{name}:1"
        small_image(self.client, image, os.urandom(500_000))
        self.sizes[name] = self.facts(name)["Size"]
        assert self.registry.put(self.client, image, f"retrial/{name}:1") == image
        remove(self.client, image)
        return tree(image)

    def facts(self, name: str) -> dict[str, int]:
        inspect: dict[str, int] = self.client.inspect_image(f"{self.registry.host}/retrial/{name}:1")  # type: ignore[no-untyped-call]
        return inspect

    def here(self) -> set[str]:
        tags = [tag for image in self.client.images() for tag in image["RepoTags"] or ()]
        return {tag.rpartition("/")[2].removesuffix(":1") for tag in tags if tag.startswith(self.registry.host)}

    def say(self, line: str) -> None:
        self.said.append(line.replace(self.registry.host, "HOST"))

    def asked(self, name: str) -> list[str]:
        """For which manifests of an image."""
        start = f"/v2/retrial/{name}/manifests/"
        return [path.removeprefix(start) for path in self.registry.asked if path.startswith(start)]


@pytest.fixture
def shop() -> Iterator[Shop]:
    require("docker", Docker().unavailable(()))
    with engine() as client, Registry() as registry:
        yield Shop(client, registry)
        for image in client.images():
            remove(client, *(tag for tag in image["RepoTags"] or () if tag.startswith(registry.host)))


def job(environment: Environment) -> Job:
    return Job(environment=environment, script="cd $RETRIAL_TREE && echo *", files={})


# When they are needed


def test_nothing_is_brought_before_it_is_needed(shop: Shop) -> None:
    wanted = {shop.offer(name) for name in ("one", "two")}
    sandbox = choose("auto", wanted, Context(options=None), shop.say)
    assert sandbox.name == "docker"
    ready = prepare_all(sandbox, wanted, paths.cache(), shop.say)
    assert (dict(ready.versions), dict(ready.broken), shop.registry.asked) == ({}, {}, [])


def test_an_image_comes_with_its_first_job_and_stays_for_the_next(shop: Shop) -> None:
    one = shop.offer("one")
    sandbox = ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say))
    assert sandbox.run(job(one)).stdout == "content\n"
    assert sandbox.run(job(one)).stdout == "content\n"
    assert shop.said[0] == "Pulling HOST/retrial/one:1 …"
    assert shop.said[1].startswith("HOST/retrial/one:1 is here (")
    assert len(shop.said) == 2
    assert sandbox.environments.record() == {one.name: {"digest": sandbox.digest(one), "versions": []}}
    assert shop.registry.asked.count("/v2/") == 1


def test_the_digest_of_its_registry_is_written_down(shop: Shop) -> None:
    one = shop.offer("one")
    Docker().prepare(one, shop.say)
    assert {image_cache._read()[one.image].digest} == shop.registry.digests()


def test_pulls_of_different_images_overlap_and_those_of_one_do_not(shop: Shop) -> None:
    one, two = shop.offer("one"), shop.offer("two")
    sandbox = ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say))
    # Each waits for the other before it gets an answer.
    shop.registry.meeting = threading.Barrier(2, timeout=60)
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(sandbox.run, [job(one), job(two), job(one), job(two)]))
    assert [each.exit_code for each in seen] == [0, 0, 0, 0]
    assert sorted(line for line in shop.said if line.startswith("Pulling")) == [
        "Pulling HOST/retrial/one:1 …",
        "Pulling HOST/retrial/two:1 …",
    ]


def test_an_image_that_cannot_be_had_fails_its_own_task_only_and_is_asked_for_once(shop: Shop) -> None:
    one, nowhere = shop.offer("one"), tree(f"{shop.registry.host}/retrial/nowhere:1")
    sandbox = ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say))
    for _ in range(2):
        with pytest.raises(EnvironmentMissing, match="retrial/nowhere:1 could not be had: manifest"):
            sandbox.run(job(nowhere))
        with pytest.raises(EnvironmentMissing, match="retrial/nowhere:1 could not be had: manifest"):
            sandbox.digest(nowhere)
    assert sandbox.run(job(one)).exit_code == 0
    assert sum(line.startswith("Pulling HOST/retrial/nowhere") for line in shop.said) == 1


def test_a_busy_registry_is_asked_again_when_it_says(shop: Shop) -> None:
    one = shop.offer("one")
    shop.registry.busy = ["slow down, retry-after: 12.5ms, allowed: 10/minute"] * 4
    Docker().prepare(one, shop.say)
    assert shop.here() == {"one"}
    waits = [line for line in shop.said if "asked too often" in line]
    assert waits[0] == "The registry of HOST/retrial/one is asked too often: again in 0.0 s (4 goes left)"
    assert waits[-1].endswith("left)")


def test_a_registry_that_stays_busy_is_left_alone_after_five_goes(shop: Shop) -> None:
    one = shop.offer("one")
    shop.registry.busy = ["retry-after: 1ms"] * 1000
    with pytest.raises(EnvironmentMissing, match="retrial/one:1 could not be had: toomanyrequests"):
        Docker().prepare(one, shop.say)
    assert sum("asked too often" in line for line in shop.said) == 4


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("toomanyrequests: retry-after: 2m", 120.0), ("Retry-After: 3", 3.0), ("toomanyrequests: pull rate limit", None)],
)
def test_a_registrys_own_pause_is_understood(said: str, seconds: float | None) -> None:
    assert images._retry_after(DockerException(said)) == seconds


# By their recipe


def test_an_image_that_no_registry_has_is_built_by_its_recipe(shop: Shop, tmp_path: Path) -> None:
    ready_with_repository()
    made = tree(f"{shop.registry.host}/retrial/made:1", f"FROM {image_task.image()}\nRUN mkdir /tree\n")
    Docker().prepare(made, shop.say)
    assert shop.here() == {"made"}
    assert any("building it from" in line for line in shop.said)
    assert image_cache._read()[made.image].digest == ""


def test_a_recipe_that_fails_says_both_reasons(shop: Shop, tmp_path: Path) -> None:
    made = tree(f"{shop.registry.host}/retrial/made:1", "FROM scratch\nCOPY absent /tree\n")
    with pytest.raises(EnvironmentMissing, match=r"could not be had: manifest .*; and .*could not be built: .*absent"):
        Docker().prepare(made, shop.say)


def test_heredocs_without_buildx_are_named(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "FROM scratch\nRUN <<EOF_1\ntrue\nEOF_1\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    images._has_buildx.cache_clear()
    try:
        with pytest.raises(EnvironmentMissing, match="heredocs, for which the docker command needs its plugin buildx"):
            Docker().prepare(tree(f"{shop.registry.host}/retrial/made:1", where), shop.say)
    finally:
        images._has_buildx.cache_clear()


def test_heredocs_are_built_with_buildx(shop: Shop, tmp_path: Path) -> None:
    require("buildx", "" if images._has_buildx() else "the docker command has no plugin buildx")
    where = "FROM scratch\nCOPY <<EOF_1 /tree/content\nmade\nEOF_1\n"
    Docker().prepare(tree(f"{shop.registry.host}/retrial/made:1", where), shop.say)
    assert shop.here() == {"made"}


# As long as there is room


def test_the_least_recently_used_goes_when_the_next_does_not_fit(shop: Shop) -> None:
    one, two, three = (shop.offer(name) for name in ("one", "two", "three"))
    sandbox = Docker(2.5 * shop.sizes["one"] / GB)
    for environment in (one, two, one, three):
        sandbox.prepare(environment, shop.say)
    assert shop.here() == {"one", "three"}
    assert [line for line in shop.said if line.startswith("Removed")] == [
        f"Removed the image HOST/retrial/two:1 ({images.size(shop.sizes['two'])}) to stay within --disk"
    ]


def test_a_limit_smaller_than_one_image_is_refused_before_anything_runs(shop: Shop) -> None:
    one, here = shop.offer("one"), tree(f"{shop.registry.host}/retrial/here:1")
    small_image(shop.client, here.image, os.urandom(900_000))
    Docker(1).prepare(one, shop.say)
    remove(shop.client, one.image)
    # Of one that went the size is remembered; of one that is here the engine knows it.
    for environment, size in ((one, shop.sizes["one"]), (here, shop.facts("here")["Size"])):
        context = Context(options=HarnessOptions(disk=0.9 * size / GB))
        with pytest.raises(
            UsageError, match=r"^--disk \S+ is too small: the image \S+ alone has \S+ MB\. Give --disk 1"
        ):
            choose("docker", [environment], context, shop.say)
        assert choose("docker", [environment], Context(options=HarnessOptions(disk=1)), shop.say)


def test_an_image_that_went_is_remembered_and_comes_back_as_it_was(shop: Shop) -> None:
    one, two = shop.offer("one"), shop.offer("two")
    sandbox = ThrottledSandbox(Docker(1.5 * shop.sizes["one"] / GB), 1, UsedEnvironments(say=shop.say))
    assert sandbox.run(job(one)).exit_code == 0
    before = sandbox.digest(one)
    assert sandbox.run(job(two)).exit_code == 0
    assert shop.here() == {"two"}
    shop.registry.asked.clear()
    assert Docker().digest(one) == before
    assert shop.registry.asked == []
    # Meanwhile its name has come to mean another image.
    [pinned] = {image_cache._read()[one.image].digest}
    assert shop.offer("one").image == one.image
    assert sandbox.run(job(one)).exit_code == 0
    assert Docker().digest(one) == before
    assert shop.here() == {"one"}
    assert set(shop.asked("one")) == {pinned}
    # One that came by its digest goes as whole as any other.
    assert sandbox.run(job(two)).exit_code == 0
    assert before not in {image["Id"] for image in shop.client.images(all=True)}


def test_an_image_that_its_registry_has_forgotten_comes_as_it_is_now_with_a_note(shop: Shop) -> None:
    one = shop.offer("one")
    sandbox = ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say))
    before = sandbox.digest(one)
    [old] = shop.registry.digests()
    remove(shop.client, one.image)
    shop.registry.forget(f"retrial/one:{old}")
    shop.offer("one")
    # Who asked before must not keep a verdict of the new one under the old one's name.
    with pytest.raises(SandboxError, match="another one than before"):
        sandbox.run(job(one))
    assert any("no longer to be had as it was" in line for line in shop.said)
    assert ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say)).digest(one) != before


def test_an_image_that_was_there_is_not_ours_to_remove(shop: Shop) -> None:
    theirs, ours = tree(f"{shop.registry.host}/retrial/theirs:1"), shop.offer("ours")
    small_image(shop.client, theirs.image)
    sandbox = Docker(0)
    sandbox.prepare(theirs, shop.say)
    sandbox.prepare(ours, shop.say)
    assert shop.here() == {"theirs", "ours"}
    sandbox.prepare(shop.offer("next"), shop.say)
    assert shop.here() == {"theirs", "next"}


def test_an_image_that_a_container_uses_stays(shop: Shop) -> None:
    one, two = shop.offer("one"), shop.offer("two")
    sandbox = Docker(0)
    sandbox.prepare(one, shop.say)
    container = shop.client.create_container(one.image, ["sleep", "1"])["Id"]
    try:
        sandbox.prepare(two, shop.say)
        assert shop.here() == {"one", "two"}
        assert sum("more than --disk allows" in line for line in shop.said) == 1
    finally:
        shop.client.remove_container(container)


def test_an_image_whose_job_is_about_to_run_stays(shop: Shop) -> None:
    one, two = shop.offer("one"), shop.offer("two")
    Docker().prepare(one, shop.say)
    with image_cache.held(one.image):
        Docker(0).prepare(two, shop.say)
        assert shop.here() == {"one", "two"}
    Docker(0).prepare(shop.offer("three"), shop.say)
    assert shop.here() == {"three"}


def test_another_image_under_the_same_name_is_said_once_and_is_not_ours(shop: Shop) -> None:
    one = shop.offer("one")
    sandbox = Docker(0)
    sandbox.prepare(one, shop.say)
    remove(shop.client, one.image)
    small_image(shop.client, one.image, b"other")
    for _ in range(2):
        sandbox.prepare(one, shop.say)
    assert sum("is another one than before" in line for line in shop.said) == 1
    sandbox.prepare(shop.offer("two"), shop.say)
    assert shop.here() == {"one", "two"}


def test_a_torn_ledger_costs_nobody_an_image(shop: Shop) -> None:
    one, two = shop.offer("one"), shop.offer("two")
    Docker().prepare(one, shop.say)
    (paths.cache() / image_cache.LEDGER).write_text("{")
    Docker(0).prepare(two, shop.say)
    assert shop.here() == {"one", "two"}


# With the registry that others use


def test_what_is_pushed_to_a_real_registry_is_pulled_from_it(
    shop: Shop, tmp_path: Path, reference_registry: str
) -> None:
    one = tree(f"{reference_registry}/retrial/one:1")
    before = small_image(shop.client, one.image, b"one")
    pushed = list(shop.client.push(one.image, stream=True, decode=True))
    assert not any("error" in step for step in pushed), pushed
    remove(shop.client, one.image)
    try:
        sandbox = ThrottledSandbox(Docker(), 1, UsedEnvironments(say=shop.say))
        assert sandbox.run(job(one)).stdout == "content\n"
        assert sandbox.digest(one) == before
        known = image_cache._read()[one.image].digest
        assert any(known in str(step.get("aux", "")) for step in pushed)
    finally:
        remove(shop.client, one.image)


@pytest.fixture
def reference_registry(tmp_path: Path) -> Iterator[str]:
    """The `registry` of the distribution project, as Debian packages it."""
    program = shutil.which("docker-registry") or shutil.which("registry")
    require("docker-registry", "" if program else "the program is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    settings = tmp_path / "registry.yml"
    settings.write_text(
        f"version: 0.1\nlog: {{level: error}}\nhttp: {{addr: '{host}'}}\n"
        f"storage: {{filesystem: {{rootdirectory: '{tmp_path / 'registry'}'}}}}\n"
    )
    with subprocess.Popen([str(program), "serve", str(settings)], stderr=subprocess.DEVNULL) as process:
        try:
            while not answers(host):
                assert process.poll() is None, "the registry has ended: was its port taken meanwhile?"
            yield host
        finally:
            process.terminate()


def answers(host: str) -> bool:
    """Whether a registry listens there."""
    with suppress(OSError), urlopen(f"http://{host}/v2/") as reply:
        return bool(reply.headers["Docker-Distribution-Api-Version"])
    return False


# Where there is no engine


def test_bubblewrap_says_that_it_has_no_images() -> None:
    environment = tree("retrial/nowhere:1")
    assert "live in images" in bwrap.Bwrap().unavailable((environment,))
    with pytest.raises(UsageError, match="Sandbox bwrap cannot be used: these tasks live in images: start a Docker"):
        choose("bwrap", {environment}, Context(options=None), lambda line: None)


def test_auto_takes_no_sandbox_without_images_for_tasks_in_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(UsageError, match=r"docker: no Docker engine answers .*bwrap: these tasks live in images"):
        choose("auto", {tree("retrial/nowhere:1")}, Context(options=None), lambda line: None)
    if not bwrap.Bwrap().unavailable((PYTHON,)):
        assert choose("auto", {PYTHON}, Context(options=None), lambda line: None).name == "bwrap"
