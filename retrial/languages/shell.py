"""Lines of sh that the scripts of several languages share."""

from __future__ import annotations

BUILD = "echo '== build'\n"
TEST = "echo '== test'\n"


def lint(command: str) -> str:
    """Looks at the solution alone. What the command complains about is the lint, and nothing else is run then."""
    return f"""\
echo '== lint'
lint="$RETRIAL_REPORTS/lint.txt"
( {command} ) >"$lint" 2>&1 || {{ status=$?; cat "$lint" >&2; exit $status; }}
rm -f "$lint"
"""
