"""Git, called so that nothing but its arguments matters: no settings, hooks, filters or repository met on the way.

And file names as git and patches have them: which ones are allowed, and how they are quoted.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from retrial.errors import NotMeasured, PatchError, UsageError
from retrial.system import host

SECONDS = 120.0
IDENTITY = b"Retrial <retrial@localhost> 946684800 +0000"
REGULAR, EXECUTABLE, SYMLINK = "100644", "100755", "120000"

DEEPEST = 250
"""Maximum depth of nested folders: real trees are less than half as deep, and a walk must end."""
# What Windows and macOS take for `.git`: its short name, streams of it, dots and blanks behind it, unseen signs in it.
_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
# Most names, and nothing of what follows can be in them.
_PART = r"(?:\.(?!git))?\w[\w.-]*"
_SIMPLE = re.compile(f"{_PART}(?:/{_PART})*", re.ASCII | re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = dict(zip(b'abfnrtv\\"', b'\a\b\f\n\r\t\v\\"', strict=True))

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
    stdin: bytes | None = None,
    seconds: float = SECONDS,
) -> Result:
    """One git command. Without `git_dir` there is no repository, wherever `cwd` lies; `cwd` is its work tree, unless it
    is the repository itself.

    Raises: UsageError when there is no git; NotMeasured when it was killed.
    """
    command = ("git", *_OPTIONS, *args)
    try:
        done = host.run_helper(
            command,
            timeout=seconds,
            cwd=cwd,
            env=_environment(cwd, git_dir),
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


def _environment(cwd: Path, git_dir: Path | None) -> dict[str, str]:
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
    if git_dir and git_dir != cwd:
        found["GIT_WORK_TREE"] = str(cwd)
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
    pack = Pack()
    tree_id = _add_files(pack, files).hex().encode()
    text = b"tree %s\nauthor %s\ncommitter %s\n\nBase\n" % (tree_id, IDENTITY, IDENTITY)
    commit_id = pack.add("commit", text)
    pack.write(git_dir / "objects" / "pack")
    (git_dir / "refs" / "heads" / branch).write_text(commit_id.hex() + "\n")


def write_trees(git_dir: Path, *trees: Mapping[str, tuple[str, bytes]]) -> list[str]:
    """Write trees of path → (mode, content), as `commit` does, and return their ids."""
    pack = Pack()
    ids = [_add_files(pack, files).hex() for files in trees]
    pack.write(git_dir / "objects" / "pack")
    return ids


def _add_files(pack: Pack, files: Mapping[str, tuple[str, bytes]]) -> bytes:
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
    return _add_tree(pack, root)


def write_index(git_dir: Path, files: Mapping[str, tuple[str, bytes]]) -> None:
    """Make these files the ones that git knows of, as `git read-tree` does in a process of its own.

    The index holds no file status: git reads each file when it first needs it.
    """
    found = sorted((encode(path), mode, content) for path, (mode, content) in files.items())
    parts = [b"DIRC" + struct.pack(">II", 2, len(found))]
    for name, mode, content in found:
        blob = hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).digest()
        entry = struct.pack(">24xI12x20sH", int(mode, 8), blob, min(len(name), 0xFFF)) + name
        # It ends with a zero at least, at a multiple of eight.
        parts.append(entry.ljust(len(entry) // 8 * 8 + 8, b"\0"))
    body = b"".join(parts)
    (git_dir / "index").write_bytes(body + hashlib.sha1(body, usedforsecurity=False).digest())


_KINDS = {"commit": 1, "tree": 2, "blob": 3}
Entry: TypeAlias = "tuple[str, bytes] | dict[bytes, Entry]"


def _add_tree(pack: Pack, tree: Mapping[bytes, Entry]) -> bytes:
    lines: dict[bytes, bytes] = {}
    for name, entry in tree.items():
        if isinstance(entry, dict):
            # Git sorts a folder as if its name ended in a slash.
            lines[name + b"/"] = b"40000 %s\0%s" % (name, _add_tree(pack, entry))
        else:
            mode, content = entry
            lines[name] = b"%s %s\0%s" % (mode.encode(), name, pack.add("blob", content))
    return pack.add("tree", b"".join(lines[key] for key in sorted(lines)))


class Pack:
    """Objects in one file, and the index that git finds them by: thousands of files of their own take seconds.

    They are not compressed, as no repository of ours lives longer than an attempt. `git fast-import` would do the same
    in five times the time, and needs a process, which for a small task is most of the work.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 12
        self._found: dict[bytes, tuple[int, int]] = {}
        """Object id → checksum and place."""

    def add(self, kind: str, content: bytes) -> bytes:
        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        name = hashlib.sha1(whole, usedforsecurity=False).digest()
        if name not in self._found:
            chunk = _pack_header(_KINDS[kind], len(content)) + zlib.compress(content, 0)
            self._found[name] = zlib.crc32(chunk), self._size
            self._chunks.append(chunk)
            self._size += len(chunk)
            if self._size >> 31:
                raise NotMeasured("The files are more than 2 GiB, which is more than one commit of ours can hold.")
        return name

    def write(self, folder: Path) -> None:
        body = b"".join((b"PACK", struct.pack(">II", 2, len(self._found)), *self._chunks))
        digest = hashlib.sha1(body, usedforsecurity=False)
        path = folder / f"pack-{digest.hexdigest()}.pack"
        path.write_bytes(body + digest.digest())
        path.with_suffix(".idx").write_bytes(self._index(digest.digest()))

    def _index(self, pack_digest: bytes) -> bytes:
        names = sorted(self._found)
        counts = [0] * 256
        for name in names:
            counts[name[0]] += 1
        checksums, places = zip(*(self._found[name] for name in names), strict=True)
        tables = [struct.pack(f">{len(table)}I", *table) for table in (tuple(accumulate(counts)), checksums, places)]
        body = b"".join((b"\xfftOc\0\0\0\2", tables[0], *names, *tables[1:], pack_digest))
        return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _pack_header(kind: int, size: int) -> bytes:
    """Kind and size, seven bits a byte (four in the first), the lowest first."""
    byte, size = kind << 4 | size & 15, size >> 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)


def check_name(name: str) -> str:
    """The name, if a patch may have it.

    Raises: PatchError.
    """
    if _SIMPLE.fullmatch(name) and len(name) <= DEEPEST:
        return name
    parts = name.split("/")
    if _CONTROL.search(name):
        raise PatchError(f"The path {name!r} has control characters.")
    if name.startswith("/"):
        raise PatchError(f"The path '{name}' is absolute.")
    if ".." in parts:
        raise PatchError(f"The path '{name}' leaves the tree.")
    if any(_GIT.fullmatch(_UNSEEN.sub("", part)) for part in parts):
        raise PatchError(f"The path '{name}' lies in a git folder.")
    if len(parts) > DEEPEST:
        raise PatchError(f"The path '{name[:100]}…' goes through more than {DEEPEST} folders.")
    if "" in parts or "." in parts:
        raise PatchError(f"The path '{name}' is not a plain relative path.")
    return name


def is_allowed(name: str) -> bool:
    """Whether a patch may have this name."""
    try:
        encode(check_name(name))
    except PatchError:
        return False
    return True


def plain_path(path: str) -> str:
    """Return a path for a message: one with control characters is escaped, so that it stays on its line."""
    return path if path.isprintable() else ascii(path)


def encode(text: str) -> bytes:
    """Text as it travels here, bytes that are not UTF-8 included.

    Raises: PatchError for half a surrogate pair, which stands for no byte.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError(f"There is half a character at position {error.start}.") from error


def decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def quote(name: str) -> str:
    """A name as git writes it: in C quotes where it has quotes, backslashes, or anything but ASCII."""
    encoded = encode(name)
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in encoded) and not name.endswith(" "):
        return name
    return '"' + "".join(map(_quoted_byte, encoded)) + '"'


def _quoted_byte(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def unquote(text: str) -> str:
    """The name that `"…"` stands for.

    Raises: PatchError.
    """
    return decode(_ESCAPE.sub(_unescaped, encode(text[1:-1])))


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if len(escape) == 3:
        return bytes([int(escape, 8)])
    if escape[0] not in _ESCAPES:
        raise PatchError(f"A quoted path has the unknown escape {decode(match[0])!r}.")
    return bytes([_ESCAPES[escape[0]]])
