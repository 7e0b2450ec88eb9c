"""Tasks whose files are in their image: the patch goes in as a file, and is applied there before any of it can run.

What this says, it says in the first lines of the output, so nothing that the patch prints later can be taken for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PATCH = "patch.diff"
SCRIPT = "eval.sh"
LEAN = "lean.sh"
"""As `SCRIPT`, without installing the package again: for patches that change nothing but Python files."""

METHODS = ("git apply", "git apply --3way", "git apply --reject", "patch --batch --forward --fuzz=5 -p1 -i")
"""Those of the official runner, in its order. The first is exact; the last may find another place than was meant."""

JOB = "RETRIAL_JOB"
"""Names the folder of the job's own files to its script."""
APPLIED = "== applied: "
REFUSED = "== not applied: "
STARTED = "== test: "

# Apply the patch, then run the check's own script in the image's tree.
# One stream, in order: the markers of eval scripts are on stderr, the results between them on stdout.
RUN = f"""\
exec 2>&1
job=$PWD
cd "$RETRIAL_TREE" || exit 125
git() {{ command git -c safe.directory='*' "$@"; }}
attempt() {{
    $1 "$job/{PATCH}" >"$job/apply.log"
}}
apply() {{
    attempt "{METHODS[0]}" && echo "{APPLIED}{METHODS[0]}" && return
    first=$(head -n 1 "$job/apply.log")
    for how in {" ".join(f'"{method}"' for method in METHODS[1:])}; do
        # An attempt that failed may have left half of the patch behind, or a conflict.
        {{ git reset -q --hard && git clean -fd; }} >"$job/reset.log"
        attempt "$how" && echo "{APPLIED}$how" && return
    done
    git apply --check --reverse "$job/{PATCH}" >"$job/reset.log" && echo "{APPLIED}already" && return
    echo "{REFUSED}$first"
    return 1
}}
lean() {{
    for name in $(git apply --numstat "$job/{PATCH}" | cut -f 3); do
        case $name in
            setup.py | */setup.py) return 1 ;;
            *.py) ;;
            *) return 1 ;;
        esac
    done
}}
script={LEAN}
if [ -s "$job/{PATCH}" ]; then
    apply 2>>"$job/apply.log" || exit 0
    lean 2>"$job/lean.log" || script={SCRIPT}
else
    echo "{APPLIED}"
fi
export {JOB}="$job"
echo "{STARTED}$script"
exec bash "$job/$script"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The output of such a job, taken apart."""

    applied: str = ""
    """The command that did it."""
    refused: str = ""
    """Why the patch did not apply."""
    started: str = ""
    """Which script was run; empty when it never came to that."""
    log: str = ""
    """What that printed: the official runner's test_output.txt."""


def read(output: str) -> Transcript:
    head, mark, log = output.partition(STARTED)
    first, newline, log = log.partition("\n")
    if mark and newline:
        return Transcript(applied=_after(APPLIED, head), started=first, log=log)
    return Transcript(applied=_after(APPLIED, output), refused=_after(REFUSED, output))


def _after(mark: str, text: str) -> str:
    found = re.search(f"^{re.escape(mark)}(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""
