"""What Rust's test programs tell: `--list`, which names their tests, and `--logfile`, a line for each that ended.

(Their JSON goes to standard output, where a test may write as well.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retrial.readers import _lines
from retrial.types import Execution, Status

LIST, LOG = ".list", ".log"
"""Of `<target>.list` and `<target>.log`."""
WHOLE = re.compile(r"\d+ tests?, \d+ benchmarks?")
"""How a list ends."""
STATUSES = {"ok": Status.PASSED, "ignored": Status.SKIPPED, "failed": Status.FAILED}


class Libtest:
    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        texts = {name: content.decode(errors="replace") for name, content in sorted(execution.reports.items())}
        targets = [name.removesuffix(LIST) for name in texts if name.endswith(LIST)]
        if not targets:
            return "the test runner left no report"
        results: dict[str, Status] = {}
        for target in targets:
            results |= _target(target, texts[target + LIST], texts.get(target + LOG, ""))
        return results

    def asserted(self, execution: Execution) -> frozenset[str]:
        found = self.read(execution)
        return frozenset() if isinstance(found, str) else frozenset(t for t in found if found[t] is Status.FAILED)

    def text(self, stdout: str) -> str:
        return stdout

    def without(self, text: str, test: str) -> str:
        return _lines.without(text, test)


def make() -> Libtest:
    return Libtest()


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
        status = STATUSES.get(first.rstrip(":"), status)
        yield (rest if status is Status.PASSED else line.rpartition(" ")[2]), status
