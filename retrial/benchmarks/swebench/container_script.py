"""Tasks whose files are in their image: the patch goes in as a file, and is applied there before any of it can run.

What this says, it says in the first lines of the output, so nothing that the patch prints later can be taken for it.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

PATCH = "patch.diff"
SCRIPT = "eval.sh"
SCRIPT_WITHOUT_INSTALL = "lean.sh"
"""As `SCRIPT`, without installing the package again: for patches that change nothing that is compiled or copied."""
SCRIPTS = (SCRIPT, SCRIPT_WITHOUT_INSTALL)
CHOICE = "script"
"""Names the one of the two that is to be run."""

METHODS = ("git apply", "git apply --3way", "git apply --reject", "patch --batch --forward --fuzz=5 -p1 -i")
"""Those of the official runner, in its order. The first is exact; the last may find another place than was meant."""

JOB = "RETRIAL_JOB"
"""Names the folder of the job's own files to its script."""
APPLIED = "== applied: "
REFUSED = "== not applied: "
BROKEN = "== broken: "
STARTED = "== test: "
_RAN = re.compile(f"{APPLIED}(.*)\n{STARTED}(.*)\n")
NOT_INSTALLED = "== not installed"
INSERT_TESTS_MARKER = "# The tests go here."
"""A line of a script: right before its test command, where the patch has not run yet unless it was installed."""
CONFLICT = " (after a conflict)"
"""Behind the command that applied a patch: the official runner would have had it work on the conflict's marks."""

# Apply the patch, then run the check's own script in the image's tree.
# One stream, in order: the markers of eval scripts are on stderr, the results between them on stdout.
RUN = f"""\
exec 2>&1
job=$PWD
say() {{ printf '%s\\n' "$1$2"; }}
for tool in bash git; do
    command -v $tool >/dev/null || {{ say "{BROKEN}" "the image has no $tool"; exit 1; }}
done
cd "$RETRIAL_TREE" 2>/dev/null || {{ say "{BROKEN}" "the image has no $RETRIAL_TREE"; exit 1; }}
git() {{ command git -c safe.directory='*' "$@"; }}
attempt() {{
    $1 "$job/{PATCH}" >"$job/apply.log" 2>&1
}}
apply() {{
    attempt "{METHODS[0]}" && say "{APPLIED}" "{METHODS[0]}" && return
    why=$(grep -m 1 '^error: ' "$job/apply.log")
    conflict=
    for how in {" ".join(f'"{method}"' for method in METHODS[1:])}; do
        # An attempt that failed may have left half of the patch behind, or a conflict.
        [ -z "$(git ls-files --unmerged)" ] || conflict="{CONFLICT}"
        {{ git reset -q --hard && git clean -fdq; }} >"$job/reset.log" 2>&1
        attempt "$how" && say "{APPLIED}" "$how$conflict" && return
    done
    git apply --check --reverse "$job/{PATCH}" >"$job/reset.log" 2>&1 && say "{APPLIED}" "already" && return
    say "{REFUSED}" "${{why:-no command can apply it}}"
    return 1
}}
if [ -s "$job/{PATCH}" ]; then
    apply || exit 1
else
    say "{APPLIED}" ""
fi
read -r script <"$job/{CHOICE}"
export {JOB}="$job"
say "{STARTED}" "$script"
exec bash "$job/$script"
"""


def with_tests(script: bytes, files: Mapping[str, bytes]) -> bytes:
    """The script with a step that writes these files into the tree, over whatever is there by then."""
    end = f"RETRIAL_{secrets.token_hex(8)}"
    written = [f"cat >{shlex.quote(path)} <<'{end}'\n".encode() + _ended(text) for path, text in files.items()]
    # Traced, it would stand in the log, where the official parsers and people read.
    step = b"\n".join([b"{ set +x; } 2>/dev/null", *(text + end.encode() for text in written), b"set -x"])
    return script.replace(f"\n{INSERT_TESTS_MARKER}\n".encode(), b"\n" + step + b"\n")


def _ended(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The output of such a job, taken apart."""

    applied: str = ""
    """The command that did it."""
    refused: str = ""
    """Why the patch did not apply."""
    broken: str = ""
    """What the image lacks."""
    started: str = ""
    """Which script was run; empty when it never came to that."""
    log: str = ""
    """What that printed: the official runner's test_output.txt."""


def read(output: str) -> Transcript:
    """Only the first lines are ours: whatever comes later, the patch may have printed."""
    if found := _RAN.match(output):
        return Transcript(applied=found[1], started=found[2], log=output[found.end() :])
    first = output.partition("\n")[0]
    if first.startswith(REFUSED):
        return Transcript(refused=first.removeprefix(REFUSED))
    if first.startswith(BROKEN):
        return Transcript(broken=first.removeprefix(BROKEN))
    return Transcript(applied=first.removeprefix(APPLIED)) if first.startswith(APPLIED) else Transcript()


def written(transcript: Transcript) -> str:
    """The output that it was read from; empty where that never came to tests."""
    if not transcript.started:
        return ""
    return f"{APPLIED}{transcript.applied}\n{STARTED}{transcript.started}\n{transcript.log}"
