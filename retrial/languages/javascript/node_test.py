"""Tests that are written for Node's own runner: found by what they import, reported in the shape of Jest's report."""

from __future__ import annotations

import re
from collections.abc import Mapping

IMPORT = re.compile(rb"""\b(?:from|import|import\s*\(|require\s*\()\s*(['"])node:test\1""")


def wanted(contents: Mapping[str, bytes]) -> bool:
    """Jest can run none of them, and Node none of Jest's."""
    return any(IMPORT.search(text) for text in contents.values())


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

SCRIPT = f"""\
cat >"$HOME/reporter.mjs" <<'END'
{REPORTER}END
node --test --test-reporter=spec --test-reporter-destination=stdout --test-reporter="$HOME/reporter.mjs" \\
    --test-reporter-destination="$RETRIAL_REPORTS/jest.json" {{tests}}
"""
