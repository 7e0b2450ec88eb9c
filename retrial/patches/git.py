"""Git, called so that nothing but its arguments matters: no settings, hooks, filters or repository met on the way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retrial.errors import NotMeasured, UsageError
from retrial.patches.names import encode
from retrial.patches.packfile import Entry, Pack, add_tree
from retrial.system import subprocesses

SECONDS = 120.0
IDENTITY = b"Retrial <retrial@localhost> 946684800 +0000"
REGULAR, EXECUTABLE, SYMLINK = "100644", "100755", "120000"

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.fsync=none",
    "protocol.allow=never",
    "gc.auto=0",
)
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))

# A place where nothing can be. Told so, git takes part in no repository, even where the folder lies below one;
# left to itself there, `git apply` changes nothing and says that all is well.
_NOWHERE = "/dev/null/none"

# `info/attributes` wins over every .gitattributes of a tree, so bytes stay what they are.
_ATTRIBUTES = "* -text !eol !crlf -ident !filter !working-tree-encoding !diff !textconv !merge !whitespace\n"


@dataclass(frozen=True, slots=True)
class Result:
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def complaint(self) -> str:
        """The first line that says what is wrong."""
        lines = self.stderr.decode("utf-8", "replace").splitlines()
        first = [line for line in lines if line.startswith(("error: ", "fatal: "))] or lines
        return first[0].removeprefix("error: ").removeprefix("fatal: ").strip() if first else "git says nothing"


def run(
    *args: str,
    cwd: Path,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    stdin: bytes | None = None,
    seconds: float = SECONDS,
) -> Result:
    """One git command. Without `git_dir` there is no repository, wherever `cwd` lies.

    Raises: UsageError when there is no git; NotMeasured when it was killed.
    """
    command = ("git", *_OPTIONS, *args)
    try:
        done = subprocesses.run(
            command,
            timeout=seconds,
            cwd=cwd,
            env=_environment(cwd, git_dir, work_tree),
            input=stdin or b"",
            capture_output=True,
        )
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise
        raise UsageError("Retrial needs git, and there is none on the PATH: install the package 'git'.") from error
    except subprocess.TimeoutExpired:
        return Result(124, b"", f"error: git {args[0]} took longer than {seconds:.0f} s".encode())
    if done.returncode < 0:
        # Such as Ctrl-C, which reaches git too: that must not become a verdict on a patch.
        raise NotMeasured(f"git {args[0]} was ended by signal {-done.returncode}.")
    return Result(done.returncode, done.stdout, done.stderr)


def _environment(cwd: Path, git_dir: Path | None, work_tree: Path | None) -> dict[str, str]:
    found = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(cwd.parent),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_DIR": str(git_dir) if git_dir else _NOWHERE,
    }
    if work_tree:
        found["GIT_WORK_TREE"] = str(work_tree)
    for who in ("AUTHOR", "COMMITTER"):
        found |= {f"GIT_{who}_NAME": "Retrial", f"GIT_{who}_EMAIL": "retrial@localhost"}
        found[f"GIT_{who}_DATE"] = "946684800 +0000"
    return found


def init_repository(git_dir: Path, *, bare: bool = True) -> None:
    """An empty repository, as `git init` with no template makes it, at a fraction of the time; one that is there
    already keeps its objects and branches."""
    for folder in ("objects/pack", "refs/heads", "info"):
        (git_dir / folder).mkdir(parents=True, exist_ok=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {str(bare).lower()}\n"
    )
    (git_dir / "info" / "attributes").write_text(_ATTRIBUTES)


def commit(git_dir: Path, branch: str, files: Mapping[str, tuple[str, bytes]]) -> None:
    """One commit without parents on a branch, of path → (mode, content).

    The objects are written here: no file of a work tree is read, and no process is needed.
    """
    root: dict[bytes, Entry] = {}
    for path, entry in files.items():
        *folders, name = encode(path).split(b"/")
        tree = root
        for folder in folders:
            inner = tree.setdefault(folder, {})
            if not isinstance(inner, dict):
                raise NotMeasured(f"'{path}' lies below a file.")
            tree = inner
        tree[name] = entry
    pack = Pack()
    tree_id = add_tree(pack, root).hex().encode()
    text = b"tree %s\nauthor %s\ncommitter %s\n\nBase\n" % (tree_id, IDENTITY, IDENTITY)
    commit_id = pack.add("commit", text)
    pack.write(git_dir / "objects" / "pack")
    (git_dir / "refs" / "heads" / branch).write_text(commit_id.hex() + "\n")
