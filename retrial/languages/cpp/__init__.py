"""C++: cmake, make and g++; Catch's own JUnit XML."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import PurePosixPath

from retrial.checks import PREBUILT_FOLDER, Prebuild
from retrial.errors import TreeError
from retrial.language import Language, Suite, Toolchain
from retrial.languages import shared

# Of the system alone: a compiler draws headers and libraries from wherever it was installed, and what lies in a home is
# not to be shown to a job.
PATH = "/usr/local/bin:/usr/bin:/bin"
BOOST = """\
test -e "$(g++ -print-file-name=libboost_date_time.so)" &&
said=$(echo BOOST_LIB_VERSION | g++ -x c++ -E -P -include boost/version.hpp -) &&
echo "Boost $said" | tr -d '"'
"""
TOOLS = {
    "g++": 'said=$(g++ -dumpfullversion -dumpversion) && echo "g++ $said"',
    "cmake": "cmake --version",
    "make": "make --version",
    # No program, but where it is missing, tasks that use it would fail whatever the patch.
    "Boost": BOOST,
}
OPTIONAL = {"Boost": ("CMakeLists.txt", r"(?im)^\s*find_package\s*\(\s*Boost\b")}
NO_BOOST = "Boost's date_time is missing, which this task needs: install libboost-date-time-dev, or use Docker."
PROGRAMS = ("g++", "cmake", "make")

STANDARD = "-std=c++17"

# Each file by itself, as the tests include it; what the build only warns of is left to the build.
LINT = f"""\
for file in {{files}}; do
    [ ! -f "$file" ] || g++ {STANDARD} -fsyntax-only -w -x c++ "$file" || exit
done"""

# Everything in an exercise is built as its own CMakeLists.txt says, but for symbols that only a debugger would read.
CONFIGURE = """\
here=$PWD
name=${here##*/}
mkdir -p build && cd build || exit
cmake -G 'Unix Makefiles' -DCMAKE_CXX_COMPILER=g++ -DCMAKE_CXX_FLAGS_DEBUG= -DEXERCISM_RUN_ALL_TESTS=1 .. \\
    >/tmp/cmake.txt 2>&1 || { status=$?; cat /tmp/cmake.txt >&2; exit $status; }
"""

MAIN = "test/tests-main.cpp"
OBJECT = "tests-main.o"
PREBUILD = f"""g++ {STANDARD} -O1 -w -c {MAIN} -o "$RETRIAL_REPORTS/{OBJECT}"\n"""

# Catch takes a dozen seconds to compile and is the same in every job. Where it lies in the place of what `make` would
# make, `make` has nothing to do; but only where the compiler would be asked for the same code.
USE_PREBUILT = f"""\
made="CMakeFiles/$name.dir"
flags=$(sed -n 's/^CXX_[A-Z]* = *//p' "$made/flags.make" 2>/dev/null | tr -s ' ' '\\n' \\
    | grep -vx -e '' -e '-W[a-z]*' -e '-g' -e '-O[0-3]' -e '-DNDEBUG' -e '-D\\(EXERCISM\\|BOOST\\|TBB\\)_[A-Z_]*')
if [ "$flags" = {STANDARD} ] && [ -f ../{PREBUILT_FOLDER}/{OBJECT} ]; then
    mkdir -p "$made/test" && cp ../{PREBUILT_FOLDER}/{OBJECT} "$made/{MAIN}.o"
fi
"""

# Not all of it: that would run the tests as well, without a report. Paths are said as in the patch.
MAKE = """\
make -O -j2 "$name" 2>/tmp/make.txt
status=$?
sed "s|$here/||g" /tmp/make.txt >&2
[ $status -eq 0 ] || exit $status
"""

# Catch can report in one way only. What a person would have read is in the report too, of tests that failed or printed.
RUN = """\
report="$RETRIAL_REPORTS/junit.xml"
"./$name" -r junit -o "$report"
status=$?
[ $status -eq 0 ] || [ ! -f "$report" ] || sed -n '/<testcase .*">$/,/<\\/testcase>$/ {
    s/^ *<testcase .* name="\\(.*\\)" time=.*/--- \\1/
    s/^ *<[a-z].*">//
    s/^ *<[a-z-]*>$//
    s/ *<\\/[a-z-]*>$//
    s/&#10;/\\n/g; s/&#34;/"/g; s/&#60;/</g; s/&#62;/>/g
    s/&quot;/"/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\\&/g; s/&#38;/\\&/g
    /^$/!p
}' "$report" | sed "s|$here/||g"
exit $status
"""

SUSPICIOUS = (
    (r"\b(?:_Exit|_exit|quick_exit|abort|exit)\s*\(", "ends the program"),
    (r"\batexit\b|__attribute__\s*\(\(\s*(?:constructor|destructor)|\.init_array", "runs before or after the tests"),
    (r"^\s*#\s*undef\b|^\s*#\s*define\s+(?:REQUIRE|CHECK|TEST_CASE|SECTION|CATCH_)", "redefines what tests use"),
    (r"\bCatch\s*::|\bcatch(?:2/catch)?\.hpp\b|_test\.cpp\b", "names the test framework or the tests"),
    (r"\boperator\s*[=!]=[^;{]*\{\s*return\s+(?:true|false)\b", "is equal to anything, or to nothing"),
    (r"/proc/self|\bptrace\b|\bdlsym\b|\bmprotect\b|\b__asm__\b|\basm\s*\(|\.incbin\b", "reaches into the program"),
    (r"\b(?:fork|exec[lv]p?e?|system|popen)\s*\(", "starts programs"),
    (r"\b(?:o|i)?fstream\b|\bfopen\s*\(", "reads or writes files"),
)


def make() -> Language:
    return Language(
        name="cpp",
        # Parallel algorithms, and they do without TBB where that is not there.
        minimum="10",
        suffixes=(".cpp", ".h", ".hpp"),
        tests=("*_test.cpp", "test/*"),
        protected_globs=("catch*.hpp", "tests-main.cpp"),
        result_parser="languages.cpp.results",
        reports_at_end=True,
        tools=TOOLS,
        optional=OPTIONAL,
        toolchain=toolchain,
        script=script,
        reference=reference,
        prebuild=prebuild,
        build_folders=("build",),
        error_line_pattern=r"^\S+:\d+:\d+: (fatal )?error: |: undefined reference to |multiple definition of "
        r"|^CMake Error"
        r"|\*\*\* No rule to make target|^terminate called |^what\(\): |^(Segmentation fault|Aborted|Killed)",
        canaries="languages.cpp.canary",
        # Catch says how many assertions failed.
        failure_exit_codes=tuple(range(1, 128)),
        suspicious=SUSPICIOUS,
        # Enough to compile Catch on a busy machine, should that be needed.
        timeout=180.0,
    )


def script(suite: Suite) -> str:
    run = shared.ANNOUNCE_BUILD + CONFIGURE + USE_PREBUILT + MAKE + shared.ANNOUNCE_TEST + RUN
    lint = LINT.format(files=shlex.join(suite.solution))
    return shared.write_script(suite, settings="", lint=lint, run=run)


def prebuild(files: Mapping[str, bytes]) -> Prebuild | None:
    folder = {path: content for path, content in files.items() if path.startswith("test/")}
    return Prebuild(script=PREBUILD, files=folder) if MAIN in folder else None


def reference(solution: tuple[str, ...], example: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """By suffix. One that is all in its header leaves the other file as it was."""
    places = {PurePosixPath(path).suffix: path for path in solution}
    given = {PurePosixPath(path).suffix: content for path, content in example.items()}
    clear = len(places) == len(solution) and len(given) == len(example)
    if not given or not clear or not given.keys() <= places.keys():
        raise TreeError(f"{len(example)} reference files cannot stand for {len(solution)} solution files.")
    return {places[suffix]: content for suffix, content in given.items()}


def toolchain() -> Toolchain | str:
    if gone := [tool for tool in PROGRAMS if not shutil.which(tool, path=PATH)]:
        return f"'{gone[0]}' is not in {PATH}: install g++, cmake and make, or use Docker."
    said = {tool: shared.say("env", f"PATH={PATH}", "sh", "-c", command) for tool, command in TOOLS.items()}
    if broken := [tool for tool in PROGRAMS if not said[tool]]:
        return f"'{broken[0]}' does not say its version: install it anew, or use Docker."
    version = ", ".join(text.splitlines()[0] for text in said.values() if text)
    return Toolchain(version=version, lacking={} if said["Boost"] else {"Boost": NO_BOOST})
