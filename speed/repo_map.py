"""How often the files that a gold patch changes are in the map of its problem (`retrial/agents/edit/repo_map/`).

Beside it what there was before: paths alone, those first that share rare words with the problem, in as many tokens.
With `--files` how long a map of so many files takes, on the newest tree of one clone.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from retrial.agents.edit import file_picker, repo_map
from retrial.agents.edit.repo_map import grammars
from retrial.benchmarks.swebench import RESERVED
from retrial.patches import policy
from retrial.patches.clones import RepositoryTree
from retrial.reports.analysis.stats import wilson
from retrial.types import Environment, Task
from speed.nearby import Sample, clone, pick, read, tree

MAP, PATHS = "map", "paths"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    sample: Sample
    wanted: frozenset[str]
    """What the gold patch changes, of what is there before."""
    shown: Mapping[str, Collection[str]]
    """By rule."""
    tokens: int
    first: float
    again: float
    """CPU seconds, without and with what was kept."""

    def all(self, rule: str) -> bool:
        return self.wanted <= set(self.shown[rule])

    def any(self, rule: str) -> bool:
        return not self.wanted.isdisjoint(self.shown[rule])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tasks", type=Path, help="a checkout of the SWE-bench task repository")
    parser.add_argument("clones", type=Path, help="bare clones: owner+name, owner+name/repo or owner/name.git")
    parser.add_argument("--size", type=int, default=50, help="how many tasks (50); 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--others", action="store_true", help="tasks that are not in Lite: what the map was tuned on")
    parser.add_argument("--misses", action="store_true", help="show what is not in the map")
    parser.add_argument("--files", type=int, default=0, help="measure only the time, of so many files")
    parser.add_argument("--of", default="django/django", help="the repository that they are of")
    options = parser.parse_args()
    if options.files:
        measure_time(options)
        return
    samples = [one for one in read(options.tasks, options.others) if clone(options.clones, one.repository)]
    rows = [measure(one, options) for one in pick(samples, options.size, options.seed)]
    for row in rows if options.misses else ():
        if not row.all(MAP):
            print(f"{row.sample.name}: {', '.join(sorted(row.wanted - set(row.shown[MAP])))}")
    show(rows)


def measure(sample: Sample, options: argparse.Namespace) -> Row:
    place = clone(options.clones, sample.repository)
    assert place
    files = editable(tree(place, sample.commit))
    problem = (options.tasks / "tasks" / sample.name / "problem_statement.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        first, drawn = timed(lambda: repo_map.draw(problem, files, options.tokens, Path(folder)))
        again, _ = timed(lambda: repo_map.draw(problem, files, options.tokens, Path(folder)))
    listed = paths_alone(sample, problem, files, options.tokens)
    return Row(
        sample=sample,
        wanted=sample.edited & files.keys(),
        shown={
            MAP: [line for line in (each.rstrip(":") for each in drawn.splitlines()) if line in files],
            PATHS: listed,
        },
        tokens=math.ceil(repo_map.weigh(drawn)),
        first=first,
        again=again,
    )


def editable(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        path: content
        for path, content in files.items()
        if len(content) <= file_picker.SHOWN and b"\0" not in content and not policy.matches(path, RESERVED)
    }


def timed(work: Callable[[], str]) -> tuple[float, str]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def paths_alone(sample: Sample, problem: str, files: Collection[str], tokens: int) -> list[str]:
    task = Task(
        instance_id=sample.name,
        benchmark="",
        language="python",
        problem_statement=problem,
        tree=RepositoryTree(repository=sample.repository, commit=sample.commit),
        environment=Environment(name="", image="", language=""),
        editable=(),
    )
    listed: list[str] = []
    for path in file_picker.candidates(task, files):
        tokens -= math.ceil(repo_map.weigh(f"{path}\n"))
        if tokens < 0:
            break
        listed.append(path)
    return listed


def show(rows: list[Row]) -> None:
    heads = "".join(f"{rule + ': all':>12}{'any':>5}{'files':>7}" for rule in (MAP, PATHS))
    print(f"{'repository':28}{'tasks':>6}{heads}{'first':>9}{'again':>7}")
    for name in sorted({row.sample.repository for row in rows}):
        show_line(name, [row for row in rows if row.sample.repository == name])
    show_line("all", rows)
    for rule in (MAP, PATHS):
        for word, found in (("all", sum(row.all(rule) for row in rows)), ("any", sum(row.any(rule) for row in rows))):
            low, high = wilson(found, len(rows))
            share = f"{found} of {len(rows)}, {found / len(rows):.0%} (95 %: {low:.0%} to {high:.0%})"
            print(f"{rule}, {word} of the gold files: {share}")
    tokens = [row.tokens for row in rows]
    print(f"tokens of a map: {sum(tokens) / len(tokens):.0f}, at most {max(tokens)}")
    print(
        f"CPU seconds of a map: at most {max(row.first for row in rows):.1f}, kept {max(row.again for row in rows):.2f}"
    )


def show_line(name: str, rows: list[Row]) -> None:
    line = f"{name:28}{len(rows):6}"
    for rule in (MAP, PATHS):
        files = sum(len(row.shown[rule]) for row in rows) / len(rows)
        line += f"{sum(row.all(rule) for row in rows):12}{sum(row.any(rule) for row in rows):5}{files:7.1f}"
    first, again = (sum(seconds) / len(rows) for seconds in zip(*((row.first, row.again) for row in rows), strict=True))
    print(f"{line}{first:9.2f}{again:7.2f}")


def measure_time(options: argparse.Namespace) -> None:
    """Tests among them, if there are not as many sources without."""
    place = clone(options.clones, options.of)
    assert place, f"no clone of {options.of}"
    found = tree(place, "HEAD")
    plain = editable(found)
    paths = [path for path in (*plain, *found) if grammars.of(path) and len(found[path]) <= file_picker.SHOWN]
    files = {path: found[path] for path in list(dict.fromkeys(paths))[: options.files]}
    problem = "The session is lost when a request has no cookie, and get_queryset() raises KeyError."
    with tempfile.TemporaryDirectory() as folder:
        for what in ("first", "kept", "kept"):
            wall = time.monotonic()
            seconds, _ = timed(lambda: repo_map.draw(problem, files, options.tokens, Path(folder)))
            wall = time.monotonic() - wall
            size = sum(map(len, files.values())) / 1e6
            print(f"{len(files)} files, {size:.1f} MB, {what}: {seconds:.2f} s of CPU, {wall:.2f} s")


if __name__ == "__main__":
    main()
