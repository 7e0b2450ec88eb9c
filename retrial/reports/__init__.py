"""Results, pages, exports and statistics, all counted from verdicts.

It reads files of runs, never a sandbox. Imports `grading` and what is below; `agents` and those above may import it.
"""
