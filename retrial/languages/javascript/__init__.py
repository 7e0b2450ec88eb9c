"""JavaScript: Jest, started by npm, with the packages that Exercism's exercises name; or Node's own test runner."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from retrial.language import Language, Suite, Toolchain
from retrial.languages import shared
from retrial.patches import policy

# Node takes its share of the memory it sees, which is not the same in every sandbox.
SETTINGS = """\
store="$RETRIAL_STORE/javascript"
export PATH="$store/bin:$PATH" NODE_OPTIONS=--max-old-space-size=1536 CI=1 FORCE_COLOR=0
export npm_config_update_notifier=false npm_config_logs_max=0 npm_config_offline=true
ln -sfn "$store/node_modules" node_modules
"""

# Read as the module that Babel will take it for, and named as the user knows it. Node itself takes either kind.
LINT = """\
broken=0
for file in {files}; do
    [ -f "$file" ] || {{ echo "Error: $file is not there any more"; broken=1; continue; }}
    for kind in {kinds}; do
        said=$(node --check --input-type=$kind - <"$file" 2>&1) && continue 2
    done
    printf '%s\\n' "$file${{said#\\[stdin\\]}}" | grep -v -e '^ *at ' -e '^Node\\.js v' -e '^$'
    broken=1
done
exit $broken
"""

# One process for all of it: a test that ends that one leaves no report. Five seconds for a test, which is what Jest
# gives, are too few for the threads of some references on a busy machine; the whole command has its limit anyway.
HOW = '--runInBand --no-watchman --testTimeout=30000 --json --outputFile="$RETRIAL_REPORTS/jest.json"'
VISIBLE = f"npm test -- {HOW}\n"
# Whatever a task's own settings say, all files are run to the end, and none from a cache that another could write to.
WHOLE = "--bail=0 --coverage=false --no-cache"
HIDDEN = f"node node_modules/jest/bin/jest.js {HOW} {WHOLE} --runTestsByPath {{tests}}\n"

# Tests for Node's own runner: found by what they import, reported in the shape of Jest's report.
NODE_TEST = re.compile(rb"""\b(?:from|import|import\s*\(|require\s*\()\s*(['"])node:test\1""")
# The runner is a process of its own, which has read this before any test is started; each file is run by a child of it.
# A suite that fails for its tests says nothing of its own. A file that has none, or that failed beside them, is itself
# reported.
REPORTER = """\
import { relative } from 'node:path';

const status = (data, failed) =>
  data.skip !== undefined ? 'skipped' : data.todo !== undefined ? 'todo' : failed ? 'failed' : 'passed';

export default async function* report(events) {
  const path = [];
  const testResults = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') path[data.nesting] = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const failed = type === 'test:fail';
    const error = data.details?.error;
    const result = {
      ancestorTitles: path.slice(0, data.nesting),
      title: data.name,
      status: status(data, failed),
      failureDetails: failed ? [{ code: error?.cause?.code ?? error?.failureType }] : [],
    };
    const file = relative('', data.file ?? data.name);
    const alone = data.nesting === 0 && relative('', data.name) === file;
    if (data.details?.type === 'suite' && (!failed || error?.failureType === 'subtestsFailed')) continue;
    testResults.push({ name: file, status: result.status, assertionResults: alone ? [] : [result] });
  }
  yield JSON.stringify({ testResults });
}
"""

NODE = f"""\
cat >"$HOME/reporter.mjs" <<'END'
{REPORTER}END
node --test --test-reporter=spec --test-reporter-destination=stdout --test-reporter="$HOME/reporter.mjs" \\
    --test-reporter-destination="$RETRIAL_REPORTS/jest.json" {{tests}}
"""

RUN = ("*.spec.js", "*.test.js", "spec.js", "test.js", "__tests__/*.js", "*/__tests__/*.js")
TESTS = (*RUN, "__tests__/*", "*/__tests__/*", "__mocks__/*", "*/__mocks__/*")

# What Jest, Babel and their like look for by its name alone.
RESERVED = ("*.config.js", "jest.setup*.js", ".*.js")

SKIPPED = re.compile(rb"(?<![\w$.])x(test|it|describe)(?=\s*[.(`])")

SUSPICIOUS = (
    (r"\bprocess\s*\.\s*(?:exit|reallyExit|abort|kill|binding|_\w+)\b", "ends or reaches into the process"),
    (r"\bprocess\s*\.\s*(?:on|once|exitCode)\b", "waits for the end of the process, or sets its status"),
    (r"asymmetricMatch|\$\$typeof", "a value that takes part in being compared"),
    (r"\bexpect\b|\bassert\s*\.\s*\w+\s*=[^=]|\bjest\s*\.", "the assertions of its tests"),
    (r"(?:from|require\s*\(|import\s*\(|import)\s*['\"](?:node:)?(?:assert|test|async_hooks|child_process|inspector|vm|module|v8)\b",
     "a module that solutions hardly need"),
    (r"\b(?:e|err|error|Error\([^)]{0,80}\))\s*\.\s*stack\b|prepareStackTrace|captureStackTrace",
     "looks at its caller"),
    (r"RETRIAL_|jest\.json|\.(?:spec|test)\.js\b|\brequire\s*\.\s*(?:cache|main)\b|\bmodule\s*\.\s*parent\b",
     "looks for its tests"),
    (r"\.\s*constructor\s*\(\s*['\"`]", "makes code out of text"),
    (r"\b(?:globalThis|global)\s*(?:\.\s*\w+\s*=[^=]|\[)", "changes what is global"),
    (r"\b(?:Object|Array|Function|Promise|Number|String|Reflect|JSON|Symbol)\s*\.(?:\s*prototype\s*\.)?\s*\w+\s*=[^=]",
     "changes what belongs to the language"),
)  # fmt: skip

TELLING = r"^\S+\.js:\d+$|^\w*Error( \[\w+\])?: |^FATAL ERROR: |^Cannot find module |process\.exit called|^> *\d+ \|"

ABOUT = "[process.version, process.execPath, ...process.report.getReport().sharedObjects].join('\\n')"
PROGRAM = "/opt/retrial/node/bin/node"
SHOWN = ("/usr/", "/lib/", "/lib32/", "/lib64/")
"""Of the host, in every sandbox."""


def make() -> Language:
    return Language(
        name="javascript",
        minimum="18.17",
        suffixes=(".js",),
        tests=TESTS,
        protected_globs=RESERVED,
        build_folders=("node_modules",),
        result_parser="languages.javascript.results",
        reports_at_end=True,
        tools={
            "node": "node --version",
            "npm": '"$RETRIAL_STORE/javascript/bin/npm" --version',
            "jest": 'node "$RETRIAL_STORE/javascript/node_modules/jest/bin/jest.js" --version',
        },
        toolchain=toolchain,
        script=script,
        reference=shared.pair_in_order,
        checked=checked,
        canaries="languages.javascript.canary",
        suspicious=SUSPICIOUS,
        error_line_pattern=TELLING,
        timeout=120.0,
    )


def script(suite: Suite) -> str:
    # Jest can run none of Node's tests, and Node none of Jest's.
    node = any(map(NODE_TEST.search, suite.contents.values()))
    # By path Jest would run helpers of the tests as well.
    tests = shlex.join([path for path in suite.tests if policy.matches(path, RUN)] or suite.tests)
    lint = LINT.format(files=shlex.join(suite.solution), kinds="module commonjs" if node else "module")
    jest = HIDDEN if suite.hidden else VISIBLE
    run = shared.ANNOUNCE_TEST + (NODE if node else jest).replace("{tests}", tests)
    return shared.write_script(suite, settings=SETTINGS, lint=lint, run=run)


def checked(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Every test of the list is switched on; one that is skipped by `test.skip` is not of the list."""
    return {path: SKIPPED.sub(rb"\1", text) if policy.matches(path, TESTS) else text for path, text in files.items()}


def toolchain() -> Toolchain | str:
    """The program that is behind any shim, and the libraries that it says it has loaded."""
    # Its npm is for making the store; jobs have their own there.
    if gone := shared.missing(("node", "npm"), "Node.js with npm"):
        return gone
    version, *parts = shared.say("node", "-p", ABOUT).splitlines() or [""]
    if not version or not parts:
        return "'node' does not run here: install Node.js anew, or use Docker."
    files = sorted({os.path.normpath(part) for part in parts if os.path.isfile(part)})
    return Toolchain(
        version=f"Node.js {version}",
        binds=tuple((path, path) for path in files if not path.startswith(SHOWN)),
        symlinks=((parts[0], PROGRAM),),
        path=(os.path.dirname(PROGRAM),),
    )
