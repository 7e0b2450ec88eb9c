"""Phase 1: plan, ladder of attempts, predictions. It never imports `score`: only files join the two.

Imports `agents` and what is below; only `cli` may import it.
"""
