"""From a patch to a verdict: run the check, judge the execution, prove the pass. The only way to a `Verdict`.

Imports `sandboxes`, `languages` and what is below; a check may name its own grader. Layer 6 and above may import it.
"""
