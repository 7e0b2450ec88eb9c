"""Shards: a selection of tasks cut into parts, each a run of its own on any machine, and what makes them one again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from retrial.benchmarks import select_tasks
from retrial.errors import UsageError
from retrial.store.history import RunHistory
from retrial.store.json_io import decode
from retrial.store.manifest import Manifest, MergedShards
from retrial.store.runs import SAFE, Run
from retrial.system.console import first_few, pluralise
from retrial.types import Task, fingerprint

_OPTION = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_NAME = re.compile(r"(?P<whole>.+)--[0-9]+-of-(?P<of>[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One part of a whole. All but its number is the same for every part."""

    number: int
    """From 1."""
    of: int
    tasks: int = 0
    """How many the whole has."""
    digest: str = ""
    """Of their ids."""
    selection: Mapping[str, Any] = field(default_factory=dict)
    """How they were chosen: what `select_tasks` takes."""

    def part(self, tasks: Sequence[Task]) -> tuple[Task, ...]:
        """Every so manieth by id: languages, which share the beginning of an id, are spread evenly."""
        return tuple(sorted(tasks, key=lambda task: task.instance_id)[self.number - 1 :: self.of])

    def name(self, whole: str) -> str:
        return f"{whole}--{self.number}-of-{self.of}"

    @property
    def size(self) -> int:
        return len(range(self.number - 1, self.tasks, self.of))

    @property
    def note(self) -> str:
        """For people, at the end of what they are told of its run."""
        none = "" if self.size else ": there are fewer tasks than shards, and it has none"
        return f"; shard {self.number} of {self.of} of {pluralise(self.tasks, 'task')}{none}"

    @property
    def identity(self) -> dict[str, str]:
        """What may not change between two goes at it, for people."""
        return {"shard": f"{self.number}/{self.of}", "selection": f"{self.tasks} tasks ({self.digest[:12]})"}

    def all_parts(self) -> list[Shard]:
        """Of its whole, all that have tasks."""
        return [replace(self, number=number) for number in range(1, min(self.of, self.tasks) + 1)]


def parse(text: str) -> Shard | None:
    """What `--shard` says; None for nothing.

    Raises: UsageError.
    """
    found = _OPTION.fullmatch(text.strip())
    if not text:
        return None
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard takes I/N, the I-th of N parts, such as 3/16, and '{text}' is not that.")
    return Shard(number=int(found[1]), of=int(found[2]))


def of_whole(shard: Shard, tasks: Sequence[Task], selection: Mapping[str, Any]) -> Shard:
    """The same, now that the whole is known."""
    return replace(shard, tasks=len(tasks), digest=_digest(tasks), selection=dict(selection))


def stored(manifest: Manifest) -> Shard | None:
    """What a run.json says of it; None for a run that is no shard."""
    return decode(manifest.shard, Shard) if manifest.shard else None


def whole_tasks(shard: Shard, everything: Sequence[Task]) -> tuple[Task, ...]:
    """Those of its whole, out of all of the benchmark's; none when these are others by now."""
    try:
        whole = select_tasks(everything, **shard.selection)
    except UsageError:
        return ()
    return whole if _digest(whole) == shard.digest else ()


def _digest(tasks: Iterable[Task]) -> str:
    return fingerprint(sorted(task.instance_id for task in tasks))


def base_run_name(name: str) -> str:
    """What a shard of that name is a part of; empty for a name that is no shard's."""
    found = _NAME.fullmatch(name)
    return found["whole"] if found else ""


def expand_to_shards(home: Path, texts: Sequence[str]) -> tuple[str, ...]:
    """The names of its shards for every name of a whole that is there in shards only; all else as it is.

    Raises: UsageError when shards of that name belong to several wholes.
    """
    return tuple(name for text in texts for name in _shards_of(home, text) or (text,))


def _shards_of(home: Path, whole: str) -> list[str]:
    if not SAFE.fullmatch(whole):
        return []
    paths = (home / "predictions").glob(f"{whole}--*-of-*/run.json")
    runs = [Run(home, path.parent.name) for path in paths if base_run_name(path.parent.name) == whole]
    found = {run.name: shard for run in runs if (shard := stored(run.manifest()))}
    if not found or not _made_of(Run(home, whole), found):
        return []
    sizes = sorted({shard.of for shard in found.values()})
    if len(sizes) > 1:
        cut = " and ".join(map(str, sizes))
        raise UsageError(f"There are shards of '{whole}' out of {cut}: name those that are to be one result.")
    return sorted(found, key=lambda name: found[name].number)


def _made_of(whole: Run, names: Iterable[str]) -> bool:
    """Whether nothing of the whole is lost when it is made of these, perhaps anew."""
    sources = whole.manifest().sources if whole.exists() else ()
    return sources is not None and set(sources) <= set(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Some shards of one whole, side by side."""

    whole: str
    """Its name."""
    given: tuple[tuple[Shard, RunHistory], ...]
    foreign_shards: tuple[tuple[Shard, RunHistory], ...] = ()
    """Shards beside them that are of another whole."""

    @property
    def first(self) -> Shard:
        return self.given[0][0]

    @property
    def missing(self) -> list[Shard]:
        numbers = {shard.number for shard, _ in self.given}
        return [shard for shard in self.first.all_parts() if shard.number not in numbers]

    @property
    def overlapping(self) -> list[str]:
        """Tasks that several of them have."""
        times = Counter(instance_id for _, each in self.given for instance_id in each.selected)
        return sorted(instance_id for instance_id, number in times.items() if number > 1)

    @property
    def is_one(self) -> bool:
        """They differ in their tasks alone."""
        return not self.overlapping and not list(self._other_settings())

    def missing_tasks(self, everything: Sequence[Task]) -> dict[str, str]:
        """As far as all tasks of the benchmark tell which they are: id → why it is not measured."""
        whole = whole_tasks(self.first, everything)
        return {
            task.instance_id: f"shard {shard.number} of {shard.of} is missing: run it, or name it too"
            for shard in self.missing
            for task in shard.part(whole)
        }

    def record(self) -> MergedShards:
        return MergedShards(
            of=self.first.of,
            given=tuple(sorted(shard.number for shard, _ in self.given)),
            missing=tuple(shard.number for shard in self.missing),
            overlapping=tuple(self.overlapping),
        )

    def notes(self) -> Iterator[str]:
        """What is odd about them, for people."""
        for shard, each in self.foreign_shards:
            yield f"'{each.run.name}' {self._why_not(shard, each)}"
        yield from self._other_settings()
        numbers = Counter(shard.number for shard, _ in self.given)
        twice = [str(number) for number, times in numbers.items() if times > 1]
        if twice:
            yield f"given more than once of the {self.first.of} shards of '{self.whole}': {first_few(twice)}"
        if self.overlapping:
            yield f"in several shards of '{self.whole}': {first_few(self.overlapping)}; of each the best is taken"
        if self.missing:
            number = sum(shard.size for shard in self.missing)
            what = (
                f"{pluralise(number, 'task')}, not measured but where another run has {'it' if number == 1 else 'them'}"
            )
            names = first_few([str(shard.number) for shard in self.missing])
            yield f"missing of the {self.first.of} shards of '{self.whole}': {names}, with {what}"

    def _why_not(self, shard: Shard, each: RunHistory) -> str:
        """It is none of them."""
        if (base_run_name(each.run.name), shard.of) != (self.whole, self.first.of):
            return f"is a shard, but not one of {self.first.of} of '{self.whole}'"
        here, there = shard.identity["selection"], self.first.identity["selection"]
        return f"was cut from another selection: {here}, not {there}"

    def _other_settings(self) -> Iterator[str]:
        known = self.given[0][1].manifest
        for _, each in self.given[1:]:
            own = each.manifest
            keys = {**(known.identity or {}), **(own.identity or {})}
            pairs = [(key, own.setting(key), known.setting(key)) for key in keys]
            different = [f"{key} {here}, not {there}" for key, here, there in pairs if here != there]
            if different:
                yield f"'{each.run.name}' was run with other settings: {'; '.join(different)}"


def together(found: Sequence[RunHistory]) -> Together | None:
    """Those among these runs that are shards of one whole with the first shard; None when none of them is one."""
    cut = [(shard, each) for each in found if (shard := stored(each.manifest))]
    if not cut:
        return None
    first, run = cut[0][0], cut[0][1].run
    whole = base_run_name(run.name)
    given, foreign = list[tuple[Shard, RunHistory]](), list[tuple[Shard, RunHistory]]()
    for shard, each in cut:
        # Parts of another selection leave tasks out that nobody would miss.
        is_own = (base_run_name(each.run.name), shard.of, shard.digest) == (whole, first.of, first.digest)
        (given if is_own else foreign).append((shard, each))
    return Together(whole=whole, given=tuple(given), foreign_shards=tuple(foreign))
