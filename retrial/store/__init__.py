"""What a run leaves on disk: predictions, journal, history, spending, transcripts.

`runs.py` alone lays out the folders of a run. Imports `patches` and what is below; every folder above may import it.
"""
