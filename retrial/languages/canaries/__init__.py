"""Canaries, whatever the language: candidates for literals to change, and the syntax trees they are found in."""
