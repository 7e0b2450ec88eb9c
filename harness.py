#!/usr/bin/env python3
"""Phase 1: try an agent on tasks, write predictions. See README.md."""

import sys

if __name__ == "__main__":
    from retrial import program

    sys.exit(program.run("harness.py", "retrial.phase1"))
