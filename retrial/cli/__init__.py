"""Arguments, commands, exit codes: the only folder that prints results and exits.

Imports every other folder; only the scripts `harness.py` and `report.py` import it.
"""
