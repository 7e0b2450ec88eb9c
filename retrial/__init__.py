"""Retrial tries code-editing agents on real tasks, then puts their patches on trial."""

__version__ = "0.1.0"

GRADING = 6
"""Raised whenever the same execution could give another verdict: it is part of every cached verdict's key."""
