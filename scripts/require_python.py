"""Says in one sentence when this Python is too old; runs on any Python 3."""

import sys

if sys.version_info < (3, 11):
    sys.exit("Retrial needs Python 3.11 or newer, this is %d.%d: make PYTHON=python3.12 …" % sys.version_info[:2])
