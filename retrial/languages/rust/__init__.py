"""Rust: cargo builds the integration tests, and each test program is run by itself."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from retrial.language import Language, Suite, Toolchain
from retrial.languages import shared
from retrial.languages.rust import cargo_toml

MANIFEST = "Cargo.toml"
EXAMPLE_MANIFEST = ".meta/Cargo-example.toml"
TARGET = re.compile(r"tests/([^/]+)\.rs")
"""Of all that lies below tests/, what cargo makes a test program of."""

CRATES = 'test -d "$RETRIAL_STORE/rust/vendor" && echo prepared'

# The profile is that of the store's crates: with any other setting they would be compiled anew. Nobody debugs here;
# panics tell their lines without it. Crates come from the store whatever the exercise says, and cargo finds what it
# made of them there behind links: it never writes to a file that is up to date.
SETTINGS = """\
export CARGO_HOME=/tmp/cargo CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
# Left by a build of somebody else's, with other versions than there are here.
rm -f Cargo.lock
if [ -d "$RETRIAL_STORE/rust" ]; then
    mkdir -p "$CARGO_HOME" target
    cp "$RETRIAL_STORE/rust/config.toml" "$CARGO_HOME"
    cp "$RETRIAL_STORE/rust/target/.rustc_info.json" target
    if grep -q dependencies Cargo.toml; then cp -rs "$RETRIAL_STORE/rust/target/debug" target; fi
fi
"""

# With the checks of arithmetic and assertions that a release would not have: only the time is to be another.
OPTIMISED = "export CARGO_PROFILE_DEV_OPT_LEVEL=2\n"

# Not `cargo check`: what that makes would be of no use to the build, while this is its first half.
LINT = "cargo build --quiet --lib"

# Features are off unless the exercise has them on by default: the tests that they hide are beyond its instructions.
BUILD = """\
cargo test --quiet --no-run --message-format=json-render-diagnostics {targets} >/tmp/built || exit
"""

# Programs by cargo's list of what it built. They are run without it, for it has one report for all of them.
# One that ends too early, with whatever status, has nobody to say so but us; and newer ones complain of `--logfile`,
# which is not for those who read what the solution did.
RUN = """\
early() {{ echo "error: the test program '$target' ended with status $1 before $2" >&2; }}
status=0
for target in {targets}; do
    program=$(sed -n 's/.*"kind":\\["test"\\].*"name":"'"$target"'".*"executable":"\\([^"]*\\)".*/\\1/p' /tmp/built)
    tests="$RETRIAL_REPORTS/$target.list" log="$RETRIAL_REPORTS/$target.log" ended=0
    "$program" --list >"$tests" || ended=$? status=$?
    tail -n 1 "$tests" | grep -q ' benchmark' || {{ early $ended 'it named its tests'; continue; }}
    : >"$log"
    "$program" --include-ignored --logfile "$log" 2>/tmp/said || ended=$? status=$?
    sed 's/^warning: .--logfile. is deprecated//' /tmp/said >&2
    [ "$(wc -l <"$log")" -ge "$(grep -c ': test$' "$tests")" ] || early $ended 'all of its tests had'
done
exit $status
"""

SUSPICIOUS = (
    (r"process::(exit|abort)|\b_?exit\s*\(", "ends the test program"),
    (r"link_section|init_array|no_mangle|export_name|global_allocator", "runs, or replaces something, at start-up"),
    (r"impl[^{]*\bPartialEq\s*<", "says what another type's values are equal to"),
    (r"macro_rules!\s*(assert|debug_assert|vec|panic|matches)", "replaces a macro that tests use"),
    (r"panic::(set_hook|take_hook|catch_unwind)", "meddles with panics"),
    (r"env::args|current_exe|current_thread|thread::current|RETRIAL", "looks at how it is run"),
    (r"include(_str|_bytes)?!|\bfs::|File::(open|create)|OpenOptions|/proc/", "reads or writes files"),
    (r"\bCommand::new|extern\s+\"C\"", "goes beneath the language"),
)


def make() -> Language:
    return Language(
        name="rust",
        minimum="1.80",
        suffixes=(".rs",),
        tests=("tests/*",),
        # What cargo takes for a build script or for one more program by its name alone.
        protected_globs=("build.rs", "src/main.rs"),
        result_parser="languages.rust.results",
        tools={"cargo": "cargo --version", "rustc": "rustc --version", "cc": "command -v cc", "crates": CRATES},
        toolchain=toolchain,
        script=script,
        reference=reference,
        reference_files=(EXAMPLE_MANIFEST,),
        build_folders=("target",),
        partly_editable=(MANIFEST,),
        admitted=cargo_toml.admitted,
        error_line_pattern=r"^error(\[E\d+\])?: |panicked at |^fatal runtime error: ",
        canaries="languages.rust.canary",
        failure_exit_codes=(101,),
        suspicious=SUSPICIOUS,
        timeout=180.0,
    )


def script(suite: Suite) -> str:
    settings = SETTINGS + (OPTIMISED if suite.optimised else "")
    found = [match[1] for match in map(TARGET.fullmatch, suite.tests) if match]
    build = BUILD.format(targets=shlex.join(f"--test={target}" for target in found))
    run = shared.ANNOUNCE_BUILD + build + shared.ANNOUNCE_TEST + RUN.format(targets=shlex.join(found))
    return shared.write_script(suite, settings=settings, lint=LINT, run=run)


def reference(solution: tuple[str, ...], example: Mapping[str, bytes]) -> Mapping[str, bytes]:
    sources = tuple(path for path in solution if path != MANIFEST)
    examples = {path: content for path, content in example.items() if path != EXAMPLE_MANIFEST}
    manifest = {MANIFEST: example[EXAMPLE_MANIFEST]} if EXAMPLE_MANIFEST in example else {}
    return {**shared.pair_in_order(sources, examples), **manifest}


def toolchain() -> Toolchain | str:
    # A linker is no part of Rust.
    if gone := shared.missing(("rustc", "cargo", "cc"), "Rust and a C compiler"):
        return gone
    # What is on the PATH may be rustup's, which starts the real one and wants its home for that.
    root = os.path.realpath(shared.say("rustc", "--print", "sysroot") or "/none")
    version = shared.say(f"{root}/bin/rustc", "--version")
    if not version or not Path(root, "bin", "cargo").exists():
        return "'rustc --print sysroot' names no toolchain with cargo: install Rust anew, or use Docker."
    return Toolchain(version=version, binds=shared.folders(root), path=(f"{root}/bin",))
