"""How often `retrial/benchmarks/swebench/nearby_tests.py` chooses a test that the hidden tests change.

Beside it the trivial rule: files named after an edited one (`test_<stem>.py`, `<stem>_test.py`), wherever they lie.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from retrial.benchmarks.swebench import nearby_tests
from retrial.patches import git
from retrial.patches import parser as diff_parser
from retrial.patches.git import decode
from retrial.reports.analysis.stats import wilson

LITE = "SWE-bench/SWE-bench_Lite"
OURS, TRIVIAL = "nearby", "same name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    name: str
    repository: str
    commit: str
    edited: frozenset[str]
    hidden: frozenset[str]
    """What the patch with the hidden tests touches; for counting only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    sample: Sample
    possible: bool
    """A file that the hidden tests change is there before."""
    chosen: Mapping[str, Collection[str]]
    """By rule."""
    seconds: float

    def found(self, rule: str) -> bool:
        return not self.sample.hidden.isdisjoint(self.chosen[rule])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tasks", type=Path, help="a checkout of the SWE-bench task repository")
    parser.add_argument("clones", type=Path, help="bare clones: owner+name, owner+name/repo or owner/name.git")
    parser.add_argument("--size", type=int, default=50, help="how many tasks (50); 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=nearby_tests.LIMIT)
    parser.add_argument("--others", action="store_true", help="tasks that are not in Lite: what the rule was tuned on")
    parser.add_argument("--misses", action="store_true", help="show what was chosen in vain")
    options = parser.parse_args()
    samples = [one for one in read(options.tasks, options.others) if clone(options.clones, one.repository)]
    rows = [measure(one, options.clones, options.limit) for one in pick(samples, options.size, options.seed)]
    for row in rows if options.misses else ():
        if row.possible and not row.found(OURS):
            print(f"{row.sample.name}: {', '.join(sorted(row.sample.edited))}")
            print(f"    wanted {', '.join(sorted(row.sample.hidden))}\n    chosen {', '.join(row.chosen[OURS])}")
    show(rows)


def read(folder: Path, others: bool) -> list[Sample]:
    import yaml

    samples = []
    for path in sorted(folder.glob("tasks/*/task.yaml")):
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
        if about["split"] == "test" and (LITE in about["datasets"]) is not others:
            edited, hidden = (touched(path.with_name(name)) for name in ("gold.patch", "test.patch"))
            samples.append(
                Sample(
                    name=about["instance_id"],
                    repository=about["repo"],
                    commit=about["base_commit"],
                    edited=edited,
                    hidden=hidden,
                )
            )
    return samples


def touched(path: Path) -> frozenset[str]:
    changes = diff_parser.parse(decode(path.read_bytes()))
    return frozenset(name for change in changes for name in change.paths)


def pick(samples: list[Sample], size: int, seed: int) -> list[Sample]:
    """Of every repository in proportion: shuffled, then sorted by repository, then at even steps."""
    random.Random(seed).shuffle(samples)
    samples.sort(key=lambda one: one.repository)
    count = min(size or len(samples), len(samples))
    return [samples[number * len(samples) // count] for number in range(count)]


def clone(folder: Path, repository: str) -> Path | None:
    joined = repository.replace("/", "+")
    places = [folder / name for name in (joined, f"{joined}/repo", f"{repository}.git")]
    return next((place for place in places if (place / "HEAD").is_file()), None)


def measure(sample: Sample, clones: Path, limit: int) -> Row:
    place = clone(clones, sample.repository)
    assert place
    files = tree(place, sample.commit)
    started = time.process_time()
    ours = nearby_tests.choose(sample.edited, files, limit)
    seconds = time.process_time() - started
    chosen = {OURS: ours, TRIVIAL: same_name(sample.edited, files)}
    return Row(sample=sample, possible=not sample.hidden.isdisjoint(files), chosen=chosen, seconds=seconds)


def same_name(edited: Collection[str], files: Iterable[str]) -> tuple[str, ...]:
    stems = [PurePosixPath(path).stem for path in edited]
    names = {name for stem in stems for name in (f"test_{stem}.py", f"{stem}_test.py")}
    return tuple(path for path in files if path.rpartition("/")[2] in names)


def tree(place: Path, commit: str) -> Mapping[str, bytes]:
    """All files of a commit."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", commit, cwd=place, git_dir=place)
    assert listed.returncode == 0, listed.complaint
    entries = [entry.partition(b"\t") for entry in listed.stdout.split(b"\0")[:-1]]
    blobs = {decode(name): about.split()[2] for about, _, name in entries if about.split()[1] == b"blob"}
    wanted = b"".join(blob + b"\n" for blob in blobs.values())
    output = git.run("cat-file", "--batch", "--buffer", cwd=place, git_dir=place, stdin=wanted).stdout
    files, start = {}, 0
    for path in blobs:
        head, start = output.index(b"\n", start), output.index(b"\n", start) + 1
        size = int(output[output.rindex(b" ", 0, head) : head])
        files[path] = output[start : start + size]
        start += size + 1
    return files


def show(rows: list[Row]) -> None:
    possible = [row for row in rows if row.possible]
    print(f"{len(rows)} tasks; in {len(rows) - len(possible)} all hidden tests are in new files: not counted below")
    print(f"{'repository':28}{'tasks':>6}" + "".join(f"{rule:>12}{'files':>7}" for rule in (OURS, TRIVIAL)))
    for name in sorted({row.sample.repository for row in possible}):
        show_line(name, [row for row in possible if row.sample.repository == name])
    show_line("all", possible)
    for rule in (OURS, TRIVIAL):
        found = sum(row.found(rule) for row in possible)
        low, high = wilson(found, len(possible))
        print(f"{rule}: {found} of {len(possible)}, {found / len(possible):.0%} (95 %: {low:.0%} to {high:.0%})")
    seconds = [row.seconds for row in rows]
    print(f"choosing takes {sum(seconds) / len(seconds):.2f} s of CPU, at most {max(seconds):.2f} s")


def show_line(name: str, rows: list[Row]) -> None:
    line = f"{name:28}{len(rows):6}"
    for rule in (OURS, TRIVIAL):
        files = sum(len(row.chosen[rule]) for row in rows) / len(rows)
        line += f"{sum(row.found(rule) for row in rows):12}{files:7.2f}"
    print(line)


if __name__ == "__main__":
    main()
