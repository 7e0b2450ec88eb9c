"""Phase 2: inputs, scoring, official reports. It never imports `predict`: only files join the two.

Imports `reports`, `benchmarks` and what is below; only `cli` may import it.
"""
