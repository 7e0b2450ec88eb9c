"""Reading patches: git's and plain unified diffs, with whatever prose lies around them.

Every section is written anew from what was understood of it, with right hunk counts and `a/` `b/` names.
So git, which applies them, cannot read anything that was not read here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retrial.errors import PatchError
from retrial.patches.git import REGULAR, check_name, encode, quote, unquote
from retrial.patches.hunks import LineReader, read_binary, read_hunks

MAX_BYTES = 20_000_000
MAX_FILES = 20_000
MAX_COPIES = 100
"""A copy takes a line of a patch, and as much room as its source."""
REMEMBERED = 100_000
"""Characters of a patch that is kept as it was read."""

_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode) ([0-7]{6})"
    r"|((?:copy|rename) (?:from|to)) (.+)"
    r"|(index) ([0-9a-f]+\.\.[0-9a-f]+(?: [0-7]{6})?)"
    r"|((?:dis)?similarity index) (\d{1,3}%)"
)
_MODE_WORDS = ("old mode ", "new mode ", "deleted file mode ", "new file mode ")
_MOVES = {"rename from", "copy from"}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_EPOCH = re.compile(r"\t19(?:70-01-01|69-12-31) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a patch does to one file. Names are relative, unquoted, without `a/` and `b/`."""

    old: str | None
    """None: the file is added."""
    new: str | None
    """None: it is deleted."""
    copied: bool = False
    """It comes from another one, which stays."""
    mode: str = ""
    """As git writes it, such as 100644; empty when the patch does not say."""
    text: str
    """The section, ready for `git apply`."""

    @property
    def name(self) -> str:
        """The name that git lists it by."""
        return self.new or self.old or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Both names, each once."""
        return tuple(dict.fromkeys(name for name in (self.old, self.new) if name))

    @property
    def counts(self) -> tuple[str, str]:
        """Lines added and lines deleted, as git lists them."""
        if "\nGIT binary patch\n" in self.text or "\nBinary files " in self.text:
            return "-", "-"
        lines = self.text[self.text.find("\n@@ ") + 1 :].split("\n") if "\n@@ " in self.text else []
        return str(sum(line[:1] == "+" for line in lines)), str(sum(line[:1] == "-" for line in lines))

    @property
    def regular(self) -> bool:
        """Neither a symlink nor a submodule."""
        return not self.mode or self.mode.startswith("100")


def normalise(patch: str) -> str:
    """Without byte order mark, with a final newline, and without the CR of a transport that put one on every line."""
    text = patch.removeprefix("\ufeff")
    if not text.strip():
        return ""
    lines = text.removesuffix("\n").split("\n")
    if lines[0].endswith("\r") and all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    return "\n".join(lines) + "\n"


def parse(patch: str) -> tuple[Change, ...]:
    """All sections of a patch; none when it is blank.

    Raises: PatchError when it has no diff, contradicts itself, or names a path that no patch may name.
    """
    # One patch is asked about again and again while it is scored; large ones are not kept for that.
    return _parse_once(patch) if len(patch) <= REMEMBERED else _parse(patch)


def _parse(patch: str) -> tuple[Change, ...]:
    text = normalise(patch)
    if len(encode(text)) > MAX_BYTES:
        raise PatchError(f"The patch has more than {MAX_BYTES // 1_000_000} MB.")
    reader = LineReader(text.split("\n")[:-1])
    changes: list[Change] = []
    while not reader.done:
        if reader.starts("diff --git "):
            changes += _git_section(reader)
        elif reader.at_plain_section():
            changes.append(_plain_section(reader))
        elif reader.line.startswith(("@@", "diff --cc ", "diff --combined ")):
            raise reader.problem("belongs to no file that can be told")
        else:
            reader.at += 1
    if text and not changes:
        raise PatchError("There is no diff in the patch.")
    if len(changes) > MAX_FILES:
        raise PatchError(f"The patch changes more than {MAX_FILES:,} files.")
    if sum(change.copied for change in changes) > MAX_COPIES:
        raise PatchError(f"The patch makes more than {MAX_COPIES} copies of files.")
    return tuple(changes)


_parse_once = functools.lru_cache(maxsize=64)(_parse)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two names as written; None is /dev/null."""

    old: str | None
    new: str | None

    @property
    def given(self) -> list[str]:
        return [name for name in (self.old, self.new) if name is not None]


def _git_section(reader: LineReader) -> list[Change]:
    header = reader.take().removeprefix("diff --git ")
    extended = _extended(reader)
    pair: _Pair | None = None
    body: list[str] = []
    if reader.starts("--- ", "+++ "):
        pair = _Pair(_written_name(reader.take()), _written_name(reader.take()))
        body = read_hunks(reader)
    elif reader.starts("--- "):
        raise reader.problem("names one side of a file and not the other")
    elif reader.line == "GIT binary patch":
        body = read_binary(reader)
    elif reader.starts("Binary files "):
        body = [reader.take()]
    old, new = _names(header, extended, pair)
    if old == new and pair and not body and not _MOVES.intersection(extended):
        raise reader.problem(f"should be the first hunk of '{new}'")
    if not (extended or pair or body):
        return []  # a file that was touched and not changed
    return [_change(old, new, extended, body)]


def _extended(reader: LineReader) -> dict[str, str]:
    found: dict[str, str] = {}
    while not reader.done:
        if match := _EXTENDED.fullmatch(reader.line):
            word, value = (group for group in match.groups() if group is not None)
            found[word] = value
        elif reader.line.startswith(_MODE_WORDS):
            raise reader.problem("has no valid mode")
        elif not reader.starts("index "):  # made-up hashes are of no use, and of no harm to a text
            break
        reader.at += 1
    return found


def _plain_section(reader: LineReader) -> Change:
    old_line, new_line = reader.take(), reader.take()
    pair = _Pair(_written_name(old_line), _written_name(new_line))
    # GNU diff gives a file that is not there a name, and the time zero.
    added = pair.old is None or (_EPOCH.search(old_line) and reader.starts("@@ -0,0 "))
    deleted = pair.new is None or (_EPOCH.search(new_line) and " +0,0 @@" in reader.line)
    old, new = _sides(_common_name(pair), added=bool(added), deleted=bool(deleted) and not added)
    return _change(old, new, {}, read_hunks(reader))


def _written_name(line: str) -> str | None:
    """The name in a `---` or `+++` line."""
    text = line[4:]
    if quoted := _QUOTED.match(text):
        name = unquote(quoted[0])
    else:
        before, tab, _ = text.partition("\t")
        name = before if tab else before.rstrip()
    return None if name == "/dev/null" else name


def _names(header: str, extended: Mapping[str, str], pair: _Pair | None) -> tuple[str | None, str | None]:
    marks = {word.split()[0] for word in extended if word.split()[0] in ("rename", "copy", "deleted")}
    marks |= {"new"} if "new file mode" in extended else set()
    if len(marks) > 1:
        raise PatchError(f"The patch says of '{header}' that it is {' and '.join(sorted(marks))}.")
    mark = marks.pop() if marks else ""
    if mark in ("rename", "copy"):
        return _moved(mark, header, extended, pair)
    name = _header_name(header)
    if name is None:
        if pair is None:
            raise PatchError(f"The patch does not say which file it means by '{header}'.")
        name = _common_name(pair)
    _agree(name, name, pair)
    added = mark == "new" or (pair is not None and pair.old is None)
    deleted = mark == "deleted" or (pair is not None and pair.new is None)
    if added and deleted:
        raise PatchError(f"The patch both adds and deletes '{name}'.")
    return _sides(name, added=added, deleted=deleted)


def _moved(word: str, header: str, extended: Mapping[str, str], pair: _Pair | None) -> tuple[str, str]:
    if not (f"{word} from" in extended and f"{word} to" in extended):
        raise PatchError(f"The patch has half a {word}: '{header}'.")
    old, new = (_unquoted(extended[f"{word} {end}"]) for end in ("from", "to"))
    if pair is not None and len(pair.given) < 2:
        raise PatchError(f"The patch says of '{header}' both a {word} and /dev/null.")
    _agree(old, new, pair)
    return check_name(old), check_name(new)


def _agree(old: str, new: str, pair: _Pair | None) -> None:
    """A reader who looks at one line of a section must not be told otherwise by another."""
    for name, raw in ((old, pair.old), (new, pair.new)) if pair else ():
        if raw is not None and name not in (raw, raw.partition("/")[2], raw.removeprefix("./")):
            raise PatchError(f"The patch has two names for one file: '{name}' and '{raw}'.")


def _sides(name: str, *, added: bool, deleted: bool) -> tuple[str | None, str | None]:
    check_name(name)
    return (None if added else name), (None if deleted else name)


def _header_name(header: str) -> str | None:
    """The name that both halves of a `diff --git` line have, if they do."""
    if quoted := _QUOTED.match(header):
        old, new = quoted[0], header[quoted.end() + 1 :]
    else:
        middle = len(header) // 2
        old, new = header[:middle], header[middle + 1 :]
        if header[middle : middle + 1] != " ":
            return None
    pair = _Pair(_unquoted(old), _unquoted(new))
    name = _common_name(pair)
    return name if all(name in (raw, raw.partition("/")[2]) for raw in pair.given) else None


def _unquoted(text: str) -> str:
    return unquote(text) if _QUOTED.fullmatch(text) else text


def _common_name(pair: _Pair) -> str:
    """The name that two sides mean, their prefixes gone; chosen as git does where they differ."""
    names = pair.given
    if not names:
        raise PatchError("The patch makes /dev/null out of /dev/null.")
    for name in names:
        if name.startswith("/"):
            check_name(name)
    tails = [name.partition("/")[2] for name in names]
    if all(name.startswith(("a/", "b/")) for name in names) or (names[0] != names[-1] and tails[0] == tails[-1] != ""):
        names = tails
    first, last = (name.removeprefix("./") for name in (names[0], names[-1]))
    return first if last.startswith(first) else last


def _change(old: str | None, new: str | None, extended: Mapping[str, str], body: list[str]) -> Change:
    left, right = f"a/{old or new}", f"b/{new or old}"
    lines = [f"diff --git {quote(left)} {quote(right)}", *_header_lines(old, new, extended)]
    if body and body[0].startswith("@@"):
        # A tab ends a name with spaces, for other readers take a name to end at the first one.
        for sign, side, name in (("---", left, old), ("+++", right, new)):
            tab = "\t" if " " in side else ""
            lines.append(f"{sign} {quote(side)}{tab}" if name else f"{sign} /dev/null")
    text = "\n".join([*lines, *body]) + "\n"
    return Change(old=old, new=new, copied="copy from" in extended, mode=_mode(extended), text=text)


def _header_lines(old: str | None, new: str | None, extended: Mapping[str, str]) -> list[str]:
    names = {"rename from": old, "rename to": new, "copy from": old, "copy to": new}
    lines = {word: f"{word} {quote(names[word] or '') if word in names else value}" for word, value in extended.items()}
    needed = "new file mode" if old is None else "deleted file mode" if new is None else ""
    if needed and needed not in lines:
        lines = {needed: f"{needed} {REGULAR}", **lines}
    return list(lines.values())


def _mode(extended: Mapping[str, str]) -> str:
    words = ("new file mode", "new mode", "deleted file mode", "old mode")
    modes = [extended[word] for word in words if word in extended]
    modes += extended.get("index", "").split(" ")[1:]
    # One mention of something other than a file is enough.
    return next((mode for mode in modes if not mode.startswith("100")), modes[0] if modes else "")


def paths_of(changes: Iterable[Change]) -> list[str]:
    return list(dict.fromkeys(check_name(path) for change in changes for path in change.paths))


def joined(changes: Iterable[Change]) -> str:
    return "".join(change.text for change in changes)
