"""Parsers that several formats share: text of replies, blocks, diffs, tool calls, lines that an edit replaces."""
