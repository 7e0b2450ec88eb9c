"""One folder for each language: image, test command, result parser, lint, canaries; and what they share.

Imports `executors`, `store` and what is below; `grading` and the folders above may import it.
"""
