"""Retrial tries code-editing agents on real tasks, then puts their patches on trial."""

import logging

__version__ = "0.1.0"

GRADING = 6
"""Raised whenever the same execution could give another verdict: it is part of every cached verdict's key."""

# Who uses a part without a program around it hears nothing of its log.
logging.getLogger(__name__).addHandler(logging.NullHandler())
