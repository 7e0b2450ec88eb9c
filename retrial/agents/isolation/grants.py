"""What an agent is given of this host: the paths and variables that the user names, and what TLS needs. Never more."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrial.attempts import Facts
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.system.files import scratch_places
from retrial.system.paths import secret_paths, secrets_below
from retrial.system.secrets import MASKER

CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
"""Variables that name a file of public certificates: passed on with the file, or TLS fails behind many a proxy."""
CLOSED = tuple(map(Path, ("/workspace", "/run/retrial", "/proc")))
"""Places in a cell in which nothing of the host's can be shown."""
KEPT = (*CLOSED, Path("/tmp"), Path("/dev"))
"""Places in a cell that nothing of the host's may cover."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """All that an agent has of this host beyond what its cell is made of."""

    paths: tuple[Path, ...] = ()
    """To be seen, read-only, at the same path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[Path, ...] = ()
    """Where answers, other agents' edits and verdicts are: never in view, whatever lies around them."""

    def describe(self) -> Facts:
        """For run.json: names only."""
        return {"paths": [str(path) for path in self.paths], "variables": sorted(self.variables)}

    def shown(self, more: Iterable[Path], visible: Iterable[str] = ()) -> tuple[Path, ...]:
        """These and `more`, without what is in view anyway, below another of them or of `visible`."""
        always, chosen = tuple(map(Path, visible)), list[Path]()
        for path in sorted({Path(os.path.abspath(path)) for path in (*self.paths, *more)}):
            in_view = any(path.is_relative_to(other) for other in (*always, *chosen))
            if not in_view or any(path.is_relative_to(secret) for secret in self.secrets):
                chosen.append(path)
        return tuple(chosen)

    def covered(self, shown: Iterable[Path]) -> tuple[str, ...]:
        """What is below these and holds secrets, as the paths inside are."""
        return secrets_below(map(str, shown), self.secrets)


def read(options: HarnessOptions) -> Grants:
    """Raises: UsageError."""
    secrets = secret_paths(options.benchmark)
    named = tuple(_path(text, secrets) for text in options.agent_path)
    variables = dict(map(_variable, options.agent_env))
    MASKER.learn_given(variables)
    certificates = {name: os.environ[name] for name in CERTIFICATES if os.path.isfile(os.environ.get(name, ""))}
    return Grants(
        paths=tuple(dict.fromkeys((*named, *(Path(os.path.abspath(file)) for file in certificates.values())))),
        variables={**certificates, **variables},
        secrets=secrets,
    )


def _path(text: str, secrets: Iterable[Path]) -> Path:
    path = Path(os.path.abspath(os.path.expanduser(text)))
    if not path.exists():
        raise UsageError(f"--agent-path {text}: there is no such file or folder.")
    if any(place.is_relative_to(path) for place in KEPT) or any(path.is_relative_to(place) for place in CLOSED):
        raise UsageError(
            f"--agent-path {text} is where the agent has something of its own: name what is in it, or move it."
        )
    real = Path(os.path.realpath(path))
    if any(place.is_relative_to(real) for place in scratch_places()):
        raise UsageError(f"--agent-path {text} is where other agents are at work: name what is in it, or set TMPDIR.")
    for secret in secrets:
        if real.is_relative_to(os.path.realpath(secret)):
            raise UsageError(f"--agent-path {text} lies in {secret}, which no agent may see: keep it elsewhere.")
    return path


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--agent-env takes NAME or NAME=VALUE, and '{name}' cannot be a variable's name.")
    if given:
        return name, value
    if name not in os.environ:
        raise UsageError(f"--agent-env {name}: that variable is not set here; set it, or give NAME=VALUE.")
    return name, os.environ[name]
