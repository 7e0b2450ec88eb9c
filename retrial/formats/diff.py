"""SEARCH/REPLACE blocks: a model writes only what changes, which is quick and cheap for those that copy well."""

from __future__ import annotations

from retrial.formats import Format
from retrial.formats.parsing.search_replace import EXAMPLE, RULES, contents

PROMPT = f"""\
You are an expert programmer. Reply with a block for every place that you change, each in this form:

path/of/file.py
```
{EXAMPLE}
```

Write the path alone on the line before the block, exactly as it was given.
{RULES}"""


def make() -> Format:
    return Format(PROMPT, contents)
