"""Go: `go test`, its own JSON, gofmt and the compiler."""

from __future__ import annotations

import os
import shlex

from retrial.language import Language, Suite, Toolchain
from retrial.languages import shared
from retrial.languages.go import renaming

# Its build cache may be read-only: what is there is used, what a job would add is lost.
SETTINGS = """\
export GOCACHE="$RETRIAL_STORE/go/cache" GOPATH=/tmp/go GOPROXY=off GOTOOLCHAIN=local GOTELEMETRY=off
export GOENV=off GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0
[ -d "$GOCACHE" ] || export GOCACHE=/tmp/go-cache
"""

# How it is formatted is a matter of taste, but what cannot be formatted is no Go. Nor is what cannot be compiled.
LINT = 'broken=$(gofmt -e {files} 2>&1 >/dev/null) || {{ echo "$broken"; exit 1; }}; go build ./...'

# Through a pipe with a name, for the status is that of `go test`: all of it live on standard output, and what became of
# the tests, without what they printed, as the report. Never from Go's cache of results: a verdict must be seen.
RUN = """\
mkfifo /tmp/go-events
sed -u '/"Action":"[a-z-]*output"/!w '"$RETRIAL_REPORTS/go.json" </tmp/go-events &
go test -json -count=1 ./... >/tmp/go-events
status=$?
wait
exit $status
"""

SUSPICIOUS = (
    (r"\bos\.Exit\(|\bsyscall\.|\bruntime\.Goexit", "ends the test program, or a test"),
    (r"\bos\.(Args|Stdout|Stderr|Getenv|Environ|Executable)|\bflag\.|RETRIAL", "looks at how it is run"),
    (r"\bfunc init\(\)", "runs at start-up"),
    (r"\bTestMain\b|\"testing\"|--- (PASS|FAIL)|=== RUN", "meddles with its tests"),
    (r"//go:(linkname|build|embed)|\bunsafe\.|\"unsafe\"|import \"C\"", "goes beneath the language"),
    (r"\bruntime\.(Caller|Callers|Stack|FuncForPC)|\bdebug\.", "looks at who calls it"),
    (r"\bos\.(Open|Read|Write|Create|Remove|Rename)|\bexec\.|/proc/", "reads or writes files, or starts programs"),
    (r"^\s*(func|var|const|type)\s+\(?(len|append|copy|cap|true|false|nil|error|string|int|bool)\b",
     "replaces what the language has"),
)  # fmt: skip


def make() -> Language:
    return Language(
        name="go",
        minimum="1.21",
        suffixes=(".go",),
        tests=("*_test.go",),
        result_parser="languages.go.results",
        tools={"go": "go version", "gofmt": "command -v gofmt"},
        toolchain=toolchain,
        script=script,
        reference=shared.pair_in_order,
        error_line_pattern=r"^\S+\.go:\d+:\d+: |^panic: |^fatal error: |build failed",
        checked=renaming.renamed,
        canaries="languages.go.canary",
        suspicious=SUSPICIOUS,
        timeout=120.0,
    )


def script(suite: Suite) -> str:
    lint = LINT.format(files=shlex.join(suite.solution))
    return shared.write_script(suite, settings=SETTINGS, lint=lint, run=shared.ANNOUNCE_BUILD + RUN)


def toolchain() -> Toolchain | str:
    if gone := shared.missing(("go",), "Go"):
        return gone
    version, root = shared.say("go", "version"), shared.say("go", "env", "GOROOT")
    if not version or not root:
        return "'go version' fails here: install Go anew, or use Docker."
    return Toolchain(
        version=version, binds=shared.folders(os.path.realpath(root)), path=(f"{os.path.realpath(root)}/bin",)
    )
