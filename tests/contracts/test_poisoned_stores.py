"""A hostile job tries to poison what later jobs of its language share: packages, caches, toolchains, prebuilt objects.

It runs as any code of a patch does, in the same view and with the same variables, and attacks in every way that a file
system knows. Nothing of it may reach a later job, on any sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import PREBUILT_FOLDER
from retrial.grading import prebuild
from retrial.grading.run_check import run_check
from retrial.language import Language
from retrial.protocols import Sandbox
from retrial.sandboxes import bwrap
from retrial.types import Execution, Job, Outcome, Task
from tests.parts import ready

pytestmark = pytest.mark.real

STORES = {
    "python": "$(python3 -c 'import os, pytest; print(*map(os.path.dirname, (pytest.__file__, os.__file__)))')",
    "javascript": "node_modules $(readlink -f node_modules)",
    "go": "$GOCACHE $GOPATH $(go env GOROOT) $(go env GOMODCACHE)",
    "rust": "$CARGO_HOME target $RETRIAL_STORE/rust/vendor $(rustc --print sysroot)",
    "java": "/tmp/java $HOME/.m2 $RETRIAL_STORE/java/repository $RETRIAL_STORE/java/lib",
    "cpp": f"{PREBUILT_FOLDER} test /usr/include/boost $(dirname $(g++ -print-file-name=libstdc++.so))",
}
"""Where each language keeps what its jobs share, as a job finds it."""

# What settings of tools are read from, and folders that sandboxes might share: to be written to, and then to be gone.
LEFT = (
    "$HOME/.config/go/env $HOME/.cargo/config.toml $HOME/.m2/settings.xml $HOME/.npmrc $HOME/.mavenrc $HOME/.bashrc "
    "$HOME/.local/lib/python3/site-packages/sitecustomize.py /tmp/go/pkg/mod/poison /tmp/go-cache/poison "
    "/tmp/cargo/config.toml /tmp/poison /tmp/job/poison /dev/shm/poison /var/tmp/poison /run/poison /etc/poison "
    "/usr/local/bin/poison /usr/local/lib/poison $RETRIAL_STORE/poison"
)

# Prints each path outside of the job's own /tmp that could be changed. Links are followed: what a job gets of a store
# is often a link into it. A hard link has the same content, and may have another mount's permissions.
ATTACK = """
# Without a store of the language's own its path may lie in the job's /tmp, where the job may make it.
[ -e "$RETRIAL_STORE" ] || RETRIAL_STORE=/nowhere
ours() { case $1 in "$RETRIAL_STORE"/*) return 1 ;; /tmp|/tmp/*) ;; *) return 1 ;; esac; }
written() { real=$(readlink -f "$1"); ours "$real" || echo "changed $real"; }
named() { real=$(readlink -f "${1%/*}"); ours "$real" || echo "changed $real/${1##*/}"; }
mkdir -p /tmp/links
for store in STORES "$RETRIAL_STORE"; do
    [ -e "$store" ] || continue
    tried=$((tried + 1))
    find -L "$store" -type f 2>/dev/null | head -n 3 >/tmp/files
    find -L "$store" -type d 2>/dev/null | head -n 3 >/tmp/folders
    while read -r file; do
        { printf poison >>"$file"; } 2>/dev/null && written "$file"
        ln -f "$file" /tmp/links/hard 2>/dev/null && { printf poison >>/tmp/links/hard; } 2>/dev/null && written "$file"
        ln -sfn "$file" /tmp/links/soft && { printf poison >>/tmp/links/soft; } 2>/dev/null && written "$file"
        chmod 777 "$file" 2>/dev/null && written "$file"
        mv -f "$file" "$file.poison" 2>/dev/null && named "$file.poison"
        rm -f "$file" 2>/dev/null && [ ! -e "$file" ] && named "$file"
    done </tmp/files
    while read -r folder; do
        { printf poison >"$folder/poison"; } 2>/dev/null && named "$folder/poison"
        ln -s /tmp "$folder/poisoned" 2>/dev/null && named "$folder/poisoned"
        mount -o remount,rw "$folder" 2>/dev/null && echo "mounted $folder"
        mount -t tmpfs none "$folder" 2>/dev/null && echo "mounted $folder"
    done </tmp/folders
done
for file in LEFT; do
    mkdir -p "$(dirname "$file")" 2>/dev/null && { printf poison >"$file"; } 2>/dev/null && written "$file"
done
echo "tried $tried"
"""
# What the next job finds of all that.
LOOK = """
for file in LEFT; do grep -sq poison "$file" && echo "left $file"; done
for store in "$RETRIAL_STORE" /tmp /dev/shm; do find "$store" -maxdepth 3 -name 'poison*' 2>/dev/null; done
echo looked
"""


@pytest.fixture(params=registry.names("languages"))
def language(request: pytest.FixtureRequest) -> Language:
    part: Language = registry.module("languages", request.param).make()
    return part


@pytest.fixture(params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest, language: Language) -> Sandbox:
    return ready(request.param, language.environment)


def run(sandbox: Sandbox, task: Task, script: str, files: Mapping[str, bytes]) -> Execution:
    return sandbox.run(Job(environment=task.environment, script=script, files=files))


def on_this_host(language: Language) -> dict[str, tuple[int, ...]]:
    """Each file of the store that bubblewrap shows: what would differ if anybody had been at it."""
    found: dict[str, tuple[int, ...]] = {}
    for folder, _, names in os.walk(bwrap._store(language.name) / language.name):
        for path in (Path(folder, name) for name in ("", *names)):
            seen = path.lstat()
            found[str(path)] = (seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return found


def test_a_hostile_job_cannot_poison_what_later_tasks_share(language: Language, sandbox: Sandbox) -> None:
    benchmark = Exercism(DEMO, "demo")
    task = next(task for task in benchmark.tasks() if task.language == language.name)
    answer = benchmark.answer(task.instance_id)
    made = answer.check.prebuild
    compiled = prebuild.files(made, task.environment, sandbox) if made else {}
    before = on_this_host(language) if sandbox.name == "bwrap" else {}

    settings = str(getattr(registry.module("languages", language.name), "SETTINGS", ""))
    attack = settings + ATTACK.replace("STORES", STORES[language.name]).replace("LEFT", LEFT)
    seen = run(sandbox, task, attack, {**task.tree.files(), **answer.check.files, **compiled})
    *changed, last = seen.stdout.splitlines()
    # An engine gives each container a /dev/shm of its own.
    assert set(changed) <= {"changed /dev/shm/poison"}, seen.stdout
    assert int(last.removeprefix("tried ")) >= 2, seen.stderr

    assert run(sandbox, task, LOOK.replace("LEFT", LEFT), {}).stdout == "looked\n"
    assert (on_this_host(language) if sandbox.name == "bwrap" else {}) == before
    assert (prebuild.files(made, task.environment, sandbox) if made else {}) == compiled
    verdict = run_check(task, answer.patch, answer.check, sandbox)
    assert verdict.outcome is Outcome.RESOLVED, verdict.output
