#!/usr/bin/env python3
"""Phase 1: try an agent on tasks, write predictions. See README.md."""

import signal
import sys

if __name__ == "__main__":
    # Before anything is begun there is nothing to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from retrial.cli import arguments, main

    sys.exit(main.run("harness.py", arguments.harness, "cli.harness"))
