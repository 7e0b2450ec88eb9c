"""Parts by name: a file's name is its part's name; nothing is listed, nothing is imported before it is asked for."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import pkgutil
from types import ModuleType

from retrial.errors import UsageError


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """All parts of a kind, found by their files; `_helpers.py` are not parts."""
    spec = importlib.util.find_spec(f"retrial.{kind}")
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(f"There is no folder retrial/{kind}.")
    found = pkgutil.iter_modules(spec.submodule_search_locations)
    return tuple(sorted(module.name.replace("_", "-") for module in found if not module.name.startswith("_")))


def module(kind: str, name: str) -> ModuleType:
    """The module of one part."""
    one = {"sandboxes": "sandbox", "edits": "edit format"}.get(kind, kind.removesuffix("s"))
    if name not in names(kind):
        raise UsageError(f"Unknown {one} '{name}'; {_hint(name, names(kind))}.")
    try:
        return importlib.import_module(f"retrial.{kind}.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("retrial"):
            raise
        raise UsageError(
            f"{one.capitalize()} '{name}' needs the package '{error.name}': pip install {error.name}"
        ) from error


def _hint(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'" if close else f"known: {', '.join(known)}"
