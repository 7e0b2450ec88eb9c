"""SEARCH/REPLACE blocks with the path inside the fence, as some models write them whatever they are told."""

from __future__ import annotations

from retrial.formats import Format
from retrial.formats.parsing.search_replace import EXAMPLE, RULES, contents

PROMPT = f"""\
You are an expert programmer. Reply with a block for every place that you change, each in this form:

```
path/of/file.py
{EXAMPLE}
```

The path is the first line inside the fence, exactly as it was given.
{RULES}"""


def make() -> Format:
    return Format(PROMPT, contents)
