"""Many jobs at once: one file for each executor, and the limits on concurrency that they share.

Imports `patches` and what is below; every folder above may import it.
"""
