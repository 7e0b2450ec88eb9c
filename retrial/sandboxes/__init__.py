"""Sandboxes, where task code runs apart from the host. `choose` finds one that works here; a probe shows that it holds.

Imports `executors`, `store` and what is below; `grading` and the folders above may import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from retrial import registry
from retrial.errors import UsageError
from retrial.protocols import Context, Sandbox
from retrial.types import Environment

PREFERRED = ("docker", "bwrap")

HELP = "install bubblewrap (such as 'sudo apt-get install bubblewrap') or start a Docker engine"


def choose(name: str, environments: Iterable[Environment], context: Context, say: Callable[[str], None]) -> Sandbox:
    """The sandbox of that name, or for `auto` the first that can run these environments. Never the bare host.

    Raises: UsageError when there is none.
    """
    wanted = tuple(environments)
    if name != "auto":
        sandbox: Sandbox = registry.module("sandboxes", name).make(context)
        # Tasks without a toolchain are skipped; for the others it must work. An image is no toolchain to install.
        why_not = _useless(sandbox, tuple(each for each in wanted if each.tree or not sandbox.missing(each)))
        if why_not:
            raise UsageError(f"Sandbox {name} cannot be used: {why_not}")
        return _with_images(sandbox, wanted, context)
    reasons: list[str] = []
    for part in PREFERRED:
        sandbox = registry.module("sandboxes", part).make(context)
        why_not = _useless(sandbox, wanted)
        if not why_not:
            say(f"Sandbox: {part} ({'not ' + reasons[0] if reasons else 'preferred, and it answers'})")
            return _with_images(sandbox, wanted, context)
        reasons.append(f"{part}: {why_not.rstrip('.')}")
    help = "start a Docker engine" if any(each.tree for each in wanted) else HELP
    raise UsageError(f"No sandbox can be used here ({'; '.join(reasons)}): {help}.")


def _useless(sandbox: Sandbox, environments: tuple[Environment, ...]) -> str:
    """Why it can run none of these; tasks of some that it cannot run are skipped."""
    # Hundreds of tasks may have an image each, about which there is but one thing to ask: whether there is an engine.
    trees = [each for each in environments if each.tree][:1]
    asked = [*trees, *(each for each in environments if not each.tree)]
    why_not = [sandbox.unavailable((each,)) for each in asked] or [sandbox.unavailable(())]
    return why_not[0] if all(why_not) else ""


def _with_images(sandbox: Sandbox, environments: tuple[Environment, ...], context: Context) -> Sandbox:
    if getattr(context.options, "image", "") and sandbox.name == "bwrap":
        raise UsageError("--image needs a Docker engine: bwrap shows the toolchains of this host.")
    disk = getattr(context.options, "disk", None)
    if disk is not None and sandbox.name == "docker":
        from retrial.sandboxes import docker

        docker.refuse_disk(disk, environments)
    return sandbox
