#!/usr/bin/env python3
"""Phase 2: put the predictions on trial, write results. See README.md."""

import signal
import sys

if __name__ == "__main__":
    # Before anything is begun there is nothing to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from retrial.cli import arguments, main

    sys.exit(main.run("report.py", arguments.report, "cli.report"))
