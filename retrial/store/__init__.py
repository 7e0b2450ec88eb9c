"""What a run leaves on disk: predictions, journal, history, spending, transcripts.

Only this folder knows a path of a run. It imports `patches` and what is below; every folder above may import it.
"""
