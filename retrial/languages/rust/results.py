"""What Rust's test programs tell: `--list`, which names their tests, and `--logfile`, a line for each that ended.

(Their JSON goes to standard output, where a test may write as well.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from retrial.languages.shared import drop_parts
from retrial.types import Execution, Status

LIST, LOG = ".list", ".log"
"""Of `<target>.list` and `<target>.log`."""
WHOLE = re.compile(r"\d+ tests?, \d+ benchmarks?")
"""How a list ends."""
STATUSES = {"ok": Status.PASSED, "ignored": Status.SKIPPED, "failed": Status.FAILED}

BLOCK = re.compile(r"---- (\S+) stdout ----")
"""What heads the output of a test that failed."""
FAILURES = "failures:"
"""Stands before all such blocks, and again before the names of all tests that failed."""
PANIC = re.compile(r"thread '([^']*)' (?:\(\d+\) )?panicked at tests/.*")
"""Of the tests' own code; the message is on the next line."""
ASSERTIONS = ("assertion `left == right` failed", "assertion `left != right` failed", "assertion failed: ")
PROGRAM = re.compile(r"^(?=running \d+ tests?$)", re.MULTILINE)
"""Where another test program begins to speak."""
COUNT = re.compile(r"^running (\d{1,9}) tests?$", re.MULTILINE)
RESULT = re.compile(r"^test result: FAILED\. (\d{1,9}) passed; (\d{1,9}) failed", re.MULTILINE)
HEADINGS, BLANKS = re.compile(rf"^{FAILURES}\n", re.MULTILINE), re.compile(r"\n{3,}")


def read(execution: Execution) -> Mapping[str, Status] | str:
    texts = {name: content.decode(errors="replace") for name, content in sorted(execution.reports.items())}
    targets = [name.removesuffix(LIST) for name in texts if name.endswith(LIST)]
    if not targets:
        return "the test runner left no report"
    results: dict[str, Status] = {}
    for target in targets:
        results |= _target(target, texts[target + LIST], texts.get(target + LOG, ""))
    return results


def asserted(execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
    """By the first panic of the test's own thread, as its output has it."""
    by_assertion = frozenset(_by_assertion(execution.stdout))
    failed = [test for test, status in results.items() if status is Status.FAILED]
    return frozenset(test for test in failed if test.partition("::")[2] in by_assertion)


def text(stdout: str) -> str:
    return stdout


def without(text: str, test: str) -> str:
    return "".join(_without(part, test) if test in part else part for part in PROGRAM.split(text))


def _target(target: str, listed: str, log: str) -> Mapping[str, Status]:
    lines = listed.splitlines()
    if not lines or not WHOLE.fullmatch(lines[-1]):
        # Whatever its tests are: the program did not come so far.
        return {target: Status.ERROR}
    # One that never ends is one that the process took with it.
    statuses = {line.removesuffix(": test"): Status.ERROR for line in lines if line.endswith(": test")}
    for name, status in _ended(log):
        if name in statuses and statuses[name] in (Status.ERROR, Status.PASSED):
            statuses[name] = status
    return {f"{target}::{name}": status for name, status in statuses.items()}


def _ended(log: str) -> Iterator[tuple[str, Status]]:
    """The last word of an entry is the test; between it and the first there may be a message, of many lines."""
    status = Status.ERROR
    for line in log.splitlines():
        first, _, rest = line.partition(" ")
        # Only of a test that did not pass there is more to say.
        status = STATUSES.get(first.rstrip(":"), Status.ERROR if status is Status.PASSED else status)
        yield (rest if status is Status.PASSED else line.rpartition(" ")[2]), status


def _by_assertion(stdout: str) -> Iterator[str]:
    """Names of tests whose first panic was an assertion's."""
    test = ""
    for line, following in pairwise([*stdout.splitlines(), ""]):
        if block := BLOCK.fullmatch(line):
            test = block[1]
        elif test and line.startswith(f"thread '{test}' "):
            if PANIC.fullmatch(line) and following.startswith(ASSERTIONS):
                yield test
            test = ""


def _without(part: str, test: str) -> str:
    """What one program said, without that test."""
    path = rf"(?:\w+::)*{re.escape(test)}"
    block, line_of_it = re.compile(f"---- {path} stdout ----"), re.compile(rf"test {path} \.\.\. \w+|    {path}")

    def begins(line: str) -> bool | None:
        said = line.rstrip("\n")
        return block.fullmatch(said) is not None if said == FAILURES or BLOCK.fullmatch(said) else None

    lines = drop_parts(part.splitlines(keepends=True), begins)
    rest = "".join(line for line in lines if not line_of_it.fullmatch(line.rstrip("\n")))
    return _one_less(rest) if f"{test} ... FAILED\n" in part else rest


def _one_less(text: str) -> str:
    """In the counts, of all and of those that failed; where none is left of them, nothing is said of failures."""
    text = COUNT.sub(lambda found: f"running {int(found[1]) - 1} tests", text, count=1)
    result = RESULT.search(text)
    if result is None:
        return text
    left = int(result[2]) - 1
    counted = f"test result: {'FAILED' if left else 'ok'}. {result[1]} passed; {left} failed"
    text = text[: result.start()] + counted + text[result.end() :]
    return text if left else BLANKS.sub("\n\n", HEADINGS.sub("", text))
