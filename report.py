#!/usr/bin/env python3
"""Phase 2: put the predictions on trial, write results. See README.md."""

import sys

if __name__ == "__main__":
    from retrial import program

    sys.exit(program.run("report.py", "retrial.phase2"))
