"""SEARCH/REPLACE blocks: a model writes only what changes, which is quick and cheap for those that copy well."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.attempts import Reply
from retrial.edits import _search_replace
from retrial.edits._fences import fence_around
from retrial.protocols import Edit, Edits

PROMPT = f"""\
You are an expert programmer. Reply with a block for every place that you change, each in this form:

path/of/file.py
```
<<<<<<< SEARCH
def area(width):
    return width
=======
def area(width, height):
    return width * height
>>>>>>> REPLACE
```

Write the path alone on the line before the block, exactly as it was given.
{_search_replace.RULES}"""


class Diff:
    prompt = PROMPT
    tools: tuple[Mapping[str, object], ...] = ()

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        return _search_replace.parse(reply, files)

    def render(self, edits: tuple[Edit, ...], files: Mapping[str, str]) -> Reply:
        """Raises: ValueError for what blocks cannot say."""
        return _search_replace.rendered((_fenced(edit, files) for edit in edits), edits, files)


def make() -> Diff:
    return Diff()


def _fenced(edit: Edit, files: Mapping[str, str]) -> str:
    block = _search_replace.written(edit, files.get(edit.path, ""))
    fence = fence_around(block)
    return f"{edit.path}\n{fence}\n{block}\n{fence}\n"
