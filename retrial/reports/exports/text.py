"""Text from outside in files that others draw: tests name themselves, and a model writes what they print."""

from __future__ import annotations

import re

from retrial.system.console import printable

SHOWN = 200
"""Characters of a reason."""
NAMED = 100
"""Characters of a name."""
CUT = "…"
LOOKED_AT = 8
"""Times as many characters as are shown: some are nothing but colour and space."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 can hold, not even as a reference."""
_ATTACHMENT = re.compile(r"\[(?=\[ATTACHMENT\|)", re.IGNORECASE)


def line(text: object, most: int = SHOWN) -> str:
    """In one line, with nothing that a terminal would obey, and no longer than that."""
    whole = str(text)
    # A reason may have millions.
    found = printable(_ANSI.sub("", whole[: most * LOOKED_AT]))
    return found if len(found) <= most and len(whole) <= most * LOOKED_AT else found[: most - 1] + CUT


def code(text: object, most: int = SHOWN) -> str:
    """As a code span of Markdown, in a table too: there nothing is a link, a tag, a mention or a number of an issue.

    What could end it is replaced by what looks like it: how a backslash stands to a pipe, readers do not agree on.
    """
    found = line(text, most).replace("`", "'").replace("|", "¦")
    return f"`{found}`" if found else "–"


def for_xml(text: str, most: int) -> str:
    """Lines and all, without what XML cannot hold; of a long one both ends."""
    if len(text) > most:
        text = f"{text[: most // 2]}\n{CUT}\n{text[-(most // 2) :]}"
    found = _NO_XML.sub("\ufffd", _ANSI.sub("", text))
    # Jenkins and GitLab publish the file that is named so in a test's output: any file of the machine.
    return _ATTACHMENT.sub("[ ", found)
