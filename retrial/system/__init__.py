"""This machine: paths, files, locks, leases, host, shutdown, logging, console, secrets.

It knows nothing of tasks, and imports only layer 0; every other folder may import it.
"""
