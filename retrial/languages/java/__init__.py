"""Java: Maven on a project file of ours, surefire's JUnit XML, javac."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from retrial.errors import TreeError
from retrial.language import Language, Suite, Toolchain
from retrial.languages import shared
from retrial.system.paths import PROJECT

POM = PROJECT / "docker" / "prepare" / "java" / "pom.xml"
"""Exercises ship Gradle files only. The store is made from the same file, so that it has all that this asks for."""

# For short runs in little memory; where recursion does not end, some of its frames tell enough. The last: no word of an
# archive of classes that was made for another JVM.
JVM = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m"),
    *("-XX:MaxJavaStackTraceDepth=40", "-Xlog:disable"),
)

# By another path: that of the store may hold a blank, and Maven's script takes the options apart at blanks.
SETTINGS = f"""\
ln -s "$RETRIAL_STORE/java" /tmp/java
mkdir -p "$HOME/.m2" && ln -s /tmp/java/settings.xml "$HOME/.m2/settings.xml"
export MAVEN_SKIP_RC=1 MAVEN_OPTS="{" ".join(JVM)} -XX:SharedArchiveFile=/tmp/java/maven.jsa"
"""

LINT = f"""\
find src/main/java -name '*.java' -exec javac {" ".join(f"-J{option}" for option in JVM)} \\
    -J-XX:SharedArchiveFile=/tmp/java/javac.jsa -proc:none -Xlint:none --release 17 -cp '/tmp/java/lib/*' \\
    -d /tmp/lint {{}} +"""

# In one stream, as it happens.
RUN = 'mvn -B -gs "$HOME/.m2/settings.xml" test 2>&1\n'

TELLING = "|".join(
    (
        r"\.java:(?:\[\d+,\d+\]|\d+: error:)",
        r"^\[ERROR\] (?:Java heap|The forked VM|There was an error)",
        r": No tests ",
        # Of the compiler itself.
        r"^java\.lang\.\w+Error",
    )
)

SUSPICIOUS = (
    (r"\b(?:System\s*\.\s*exit|halt)\s*\(", "ends the JVM"),
    (r"\baddShutdownHook\b|\bsun\s*\.\s*misc\b", "reaches into the JVM"),
    (r"\bgetStackTrace\b|\bStackWalker\b|\bThread\s*\.\s*getAllStackTraces\b", "looks at who calls it"),
    (r"\bsetAccessible\b|\bjava\s*\.\s*lang\s*\.\s*(?:reflect(?!\.Array\b)|instrument|invoke)\b", "uses reflection"),
    (r"\b(?:junit|assertj|opentest4j|surefire)\b", "names the test framework"),
    (r"\bProcessBuilder\b|\bgetRuntime\s*\(\s*\)\s*\.\s*exec\b|\bProcessHandle\b", "starts or looks for programs"),
    (r"\bjava\s*\.\s*nio\s*\.\s*file\b|\bFile(?:Reader|Writer|InputStream|OutputStream)\b", "reads or writes files"),
    (r"\bboolean\s+equals\s*\([^)]*\)\s*\{\s*return\s+true\b", "is equal to anything"),
)

# A piece is read in one way only, or a file that is cut short would be read for ever.
STRING = r'"""(?s:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
COMMENT = r"//[^\n]*|/\*(?s:.)*?\*/"
PIECE = rf"(?>{STRING}|{COMMENT}|[^()])"
BRACKETS = rf"\((?:{PIECE}|\({PIECE}*+\))*+\)"
NAME = r"\s*\.\s*".join(("org", "junit", "jupiter", "api", ""))
DISABLED = re.compile(rf"(?P<other>{STRING}|{COMMENT})|@\s*(?:{NAME})?Disabled\b(?:\s*{BRACKETS})?")


def make() -> Language:
    return Language(
        name="java",
        minimum="17",
        suffixes=(".java",),
        tests=("src/test/*",),
        # The first would turn the solution into a module, which is tested in another way. Tests beside the solution
        # are none that count, and do not compile there.
        protected_globs=("module-info.java", "package-info.java", "*Test.java", "*Tests.java"),
        build_folders=("build", "target", "bin", ".gradle"),
        result_parser="languages.java.results",
        reports_at_end=True,
        tools={
            "javac": "javac -version",
            "mvn": "mvn -B -version",
            "JUnit": 'test -d "$RETRIAL_STORE/java/repository" && echo prepared',
        },
        toolchain=toolchain,
        script=script,
        reference=reference,
        checked=checked,
        error_line_pattern=TELLING,
        canaries="languages.java.canary",
        suspicious=SUSPICIOUS,
        timeout=180.0,
    )


def script(suite: Suite) -> str:
    return shared.write_script(suite, settings=SETTINGS, lint=LINT, run=shared.ANNOUNCE_BUILD + RUN)


def checked(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    tests = {path: _enabled(content) if path.endswith(".java") else content for path, content in files.items()}
    return {**tests, "pom.xml": POM.read_bytes()}


def _enabled(source: bytes) -> bytes:
    """Without `@Disabled`, wherever that is no part of a text or a comment."""
    text = source.decode("utf-8", errors="surrogateescape")
    return DISABLED.sub(lambda found: found["other"] or "", text).encode("utf-8", errors="surrogateescape")


def reference(solution: tuple[str, ...], example: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """By name: a reference may have classes of its own, and none for a file that is right as it is."""
    folder = PurePosixPath(solution[0]).parent
    places = {PurePosixPath(path).name: path for path in solution}
    files = {PurePosixPath(path).name: content for path, content in example.items()}
    if not files.keys() & places.keys():
        raise TreeError(f"No reference file is named like a solution file: {', '.join(files)}.")
    return {places.get(name, str(folder / name)): content for name, content in files.items()}


def toolchain() -> Toolchain | str:
    if gone := shared.missing(("mvn",), "Maven and a JDK"):
        return gone
    said = shared.say("mvn", "-B", "-version")
    # As Maven finds it: by JAVA_HOME, by the PATH or by a setting of its own.
    maven, home, jdk = (
        re.search(pattern, said, re.MULTILINE)
        for pattern in (r"Apache Maven ([\d.]+)", r"^Maven home: (.+)$", r", runtime: (.+)$")
    )
    if not (maven and home and jdk):
        return "'mvn -version' fails here: install Maven and a JDK anew, or use Docker."
    roots = os.path.realpath(jdk[1]), os.path.realpath(home[1])
    version = shared.say(f"{roots[0]}/bin/javac", "-version")
    if not version:
        return f"Maven runs on {jdk[1]}, which has no working javac: install a JDK, or use Docker."
    return Toolchain(
        version=f"{version}, Maven {maven[1]}",
        binds=shared.folders(*roots, *_configuration(roots)),
        path=tuple(f"{root}/bin" for root in roots),
    )


def _configuration(roots: Iterable[str]) -> set[str]:
    """Folders below /etc that links in these lead to, as distributions lay them; never /etc as a whole."""
    links = (path for root in roots for path in Path(root).rglob("*") if path.is_symlink())
    targets = (link.resolve() for link in links)
    found = {target if target.is_dir() else target.parent for target in targets}
    found = {folder for folder in found if Path("/etc") in folder.parents}
    return {str(folder) for folder in found if not found.intersection(folder.parents)}
