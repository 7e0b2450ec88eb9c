"""Owners: everything that a process makes carries its name, and only what a dead one left is removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from retrial.sandboxes.prepare import remove_orphans
from retrial.system import locks
from retrial.system.files import scratch_folder, scratch_prefix, write_atomically
from retrial.system.locks import ResourceKind
from tests.conftest import PROJECT
from tests.parts import require

# Makes a folder, a file that is not whole yet and a process of its own, says so, and waits to be killed.
MAKER = """
import os, subprocess, sys, tempfile
from pathlib import Path
from retrial.system import locks
from retrial.system.files import scratch_folder, scratch_prefix

where = Path(sys.argv[1])
half = locks.register_resource(locks.ResourceKind.FILES, where)
(where / f".results.json.{half}.x").write_text("half")
mark = locks.register_resource(locks.ResourceKind.PROCESSES, "")
child = subprocess.Popen(["sleep", "1000"], env={locks.VARIABLE: mark}, start_new_session=True)
# On a busy machine a new program may not have its variables yet.
while not Path(f"/proc/{child.pid}/environ").read_bytes():
    pass
with scratch_folder(where=where) as folder:
    (folder / "file").write_text("content")
    print(folder, child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """A process that has made things; at the end of `with` it is dead in any case."""

    def __init__(self, where: Path) -> None:
        where.mkdir(exist_ok=True)
        self.where = where

    def __enter__(self) -> Maker:
        self._process = subprocess.Popen(
            [sys.executable, "-c", MAKER, str(self.where)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout
        folder, child = self._process.stdout.readline().split()
        self.folder, self.child = Path(folder), int(child)
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.communicate("")

    def __exit__(self, *exception: object) -> None:
        self.kill()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()


def lives(pid: int) -> bool:
    """A zombie is dead; whoever should reap it may take its time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_killed_process_left_is_removed_and_said(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        remove_orphans()
        assert list(maker.where.iterdir()) == []
        assert not lives(maker.child)
    assert "1 process, 1 folder, 1 file" in capsys.readouterr().err
    assert os.listdir(cache / locks.ALIVE) == []


def test_what_a_living_process_has_is_its_own(tmp_path: Path) -> None:
    with Maker(tmp_path / "here") as maker:
        remove_orphans()
        assert len(list(maker.where.iterdir())) == 2 and lives(maker.child)
        maker.kill()
        remove_orphans()
        assert not lives(maker.child)


def test_who_ends_by_itself_leaves_no_trace(tmp_path: Path, cache: Path) -> None:
    with Maker(tmp_path / "here") as maker:
        os.kill(maker.child, 9)
        maker.end()
    assert not maker.folder.exists()
    assert os.listdir(cache / locks.ALIVE) == []


def test_an_owner_of_another_cache_is_somebody_else(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "other"))
        remove_orphans()
        assert maker.folder.is_dir() and lives(maker.child)
        monkeypatch.setenv("RETRIAL_CACHE", str(cache))
        remove_orphans()
        assert not maker.folder.exists()


@pytest.mark.parametrize(
    ("changed", "left"), [({"boot": "another", "machine": "another"}, True), ({"boot": "earlier"}, False)]
)
def test_an_owner_of_another_machine_cannot_be_judged_and_one_of_an_earlier_boot_is_dead(
    tmp_path: Path, cache: Path, changed: dict[str, str], left: bool
) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        [file] = (cache / locks.ALIVE).iterdir()
        first, *rest = file.read_text().splitlines()
        file.write_text("\n".join([json.dumps({**json.loads(first), **changed}), *rest]) + "\n")
        remove_orphans()
        assert maker.folder.exists() == file.exists() == left
        os.kill(maker.child, 9) if left else None


def test_what_another_namespace_of_this_machine_made_is_left_to_whoever_sees_it(tmp_path: Path, cache: Path) -> None:
    """A container with the same cache has another /dev/shm and other processes: it finds nothing there."""
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        [file] = (cache / locks.ALIVE).iterdir()
        before = file.read_text()
        first, *rest = before.splitlines()
        file.write_text("\n".join([json.dumps({**json.loads(first), "namespaces": "others"}), *rest]) + "\n")
        remove_orphans()
        assert maker.folder.exists() and lives(maker.child) and file.exists()
        file.write_text(before)
        remove_orphans()
        assert not maker.folder.exists() and not lives(maker.child) and not file.exists()


def test_what_cannot_be_removed_is_tried_again_and_stands_in_nobodys_way(tmp_path: Path, cache: Path) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        [file] = (cache / locks.ALIVE).iterdir()
        with file.open("a") as notes:
            print(json.dumps({"kind": ResourceKind.CONTAINERS, "place": f"unix://{tmp_path}/no.sock"}), file=notes)
        remove_orphans()
        assert not maker.folder.exists()
        assert file.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"machine": 1}', '{"machine": "m", "boot": "b", "pid": "x"}'])
def test_a_file_that_says_nothing_is_nobodys(cache: Path, content: str) -> None:
    folder = cache / locks.ALIVE
    folder.mkdir(parents=True)
    (folder / "odd").write_text(content)
    assert list(locks.expired_leases()) == []


def test_a_torn_note_does_not_take_the_others_with_it(tmp_path: Path, cache: Path) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        [file] = (cache / locks.ALIVE).iterdir()
        with file.open("a") as notes:
            notes.write('{"kind": "fol')
        remove_orphans()
        assert not maker.folder.exists() and not file.exists()


def test_of_two_that_start_at_once_one_removes(tmp_path: Path) -> None:
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        first = locks.expired_leases()
        assert next(first).made
        assert list(locks.expired_leases()) == []
        first.close()
        remove_orphans()
        assert not maker.folder.exists()


def test_a_folder_that_only_looks_like_an_orphan_stays(tmp_path: Path, cache: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "data").mkdir(parents=True)
    with Maker(tmp_path / "here") as maker:
        maker.kill()
        [file] = (cache / locks.ALIVE).iterdir()
        link = maker.where / f"{scratch_prefix(file.name)}link"
        link.symlink_to(precious)
        remove_orphans()
        assert (precious / "data").is_dir() and link.is_symlink()
        os.kill(maker.child, 9) if lives(maker.child) else None


def test_where_nothing_can_be_noted_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "file"))
    with scratch_folder(where=tmp_path) as folder:
        assert folder.is_dir()
    assert not folder.exists()


def test_a_fork_is_somebody_else() -> None:
    mine = locks.current_lease().name
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, locks.current_lease().name.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100).decode() not in ("", mine)
    os.close(read)
    os.close(write)


def test_a_file_under_way_carries_our_name_and_is_gone_when_it_could_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="there"):
        write_atomically(tmp_path / "there", b"content")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    [(kind, place)] = locks.current_lease()._places
    assert (kind, place) == (ResourceKind.FILES, str(tmp_path))


@pytest.mark.real
@pytest.mark.parametrize("can_unmount", [True, False])
def test_what_is_mounted_in_a_folder_is_never_removed_with_it(tmp_path: Path, can_unmount: bool) -> None:
    precious, holder = tmp_path / "precious", tmp_path / "holder"
    precious.mkdir()
    (precious / "file").write_text("precious")
    (holder / "a b").mkdir(parents=True)
    script = f"""
import os, subprocess, sys
from pathlib import Path
from retrial.system.files import remove_all
subprocess.run(["mount", "--bind", {str(precious)!r}, {str(holder / "a b")!r}], check=True)
os.environ["PATH"] = os.environ["PATH"] if {can_unmount} else ""
remove_all(Path({str(holder)!r}))
"""
    # In mounts of its own, so that nothing is left of them whatever happens.
    alone = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    done = subprocess.run([*alone, sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        require("mounts", done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert (precious / "file").read_text() == "precious"
    assert holder.exists() != can_unmount
