"""The command line of both programs: arguments, commands, exit codes.

Imports every other folder; only the scripts `harness.py` and `report.py` import it.
"""
