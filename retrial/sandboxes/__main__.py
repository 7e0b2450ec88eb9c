"""`python -m retrial.sandboxes`: says which sandbox tests would run in; exit code 1 when there is none."""

from __future__ import annotations

import sys

from retrial.errors import UsageError
from retrial.protocols import Context
from retrial.sandboxes import choose


def main() -> int:
    try:
        choose("auto", (), Context(options=None), print)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
