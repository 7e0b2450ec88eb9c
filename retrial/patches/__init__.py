"""Trees and patches: parsing, policy, applying, git, workspaces.

It knows nothing of runs, and imports only layer 0 and `system`; every folder above may import it.
"""
