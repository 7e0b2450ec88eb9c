"""Results, pages, exports, statistics: what becomes of verdicts.

It reads files of runs, never a sandbox. Imports `grading` and what is below; `score` and `cli` may import it.
"""
