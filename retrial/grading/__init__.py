"""From a patch to a verdict: run the check, judge the execution, prove the pass. The only way to a `Verdict`.

Imports `sandboxes`, `languages` and what is below, and still SWE-bench's grader; layer 6 and above may import it.
"""
