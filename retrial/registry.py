"""Parts by name: a module that defines `make` is a part, and its file name is its name on the command line.

Nothing is listed, and nothing is imported before it is asked for.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from retrial.errors import UsageError

SINGULAR = {"sandboxes": "sandbox", "formats": "edit format", "reports.exports": "export"}
_DEFINES_MAKE = re.compile(rb"^def make\(", re.MULTILINE)


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """Return the parts of a kind in order of their names. The text of a module tells whether it is one."""
    spec = importlib.util.find_spec(f"retrial.{kind}")
    if spec is None or spec.submodule_search_locations is None:
        raise UsageError(f"There is no folder retrial/{kind}.")
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    found = pkgutil.iter_modules(spec.submodule_search_locations)
    parts = (module.name for module in found if any(_is_part(folder / module.name) for folder in folders))
    return tuple(sorted(name.replace("_", "-") for name in parts))


def _is_part(path: Path) -> bool:
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return source.is_file() and bool(_DEFINES_MAKE.search(source.read_bytes()))


def module(kind: str, name: str) -> ModuleType:
    """Return the module of one part. Raises: UsageError when there is none, or a package that it needs is missing."""
    one = SINGULAR.get(kind, kind.removesuffix("s"))
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


def load(path: str) -> ModuleType:
    """Return the module that a check names: `languages.go.results` is `retrial/languages/go/results.py`."""
    return importlib.import_module(f"retrial.{path}")


def _hint(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'" if close else f"known: {', '.join(known)}"
