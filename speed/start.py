"""Measure the CPU seconds that `--help` takes, and those of a bare interpreter."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from statistics import median

from retrial.system.paths import PROJECT


def cpu_seconds(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="how often each command is run")
    rounds: int = parser.parse_args().rounds
    commands = {
        "python -c pass": ("-c", "pass"),
        "harness.py --help": ("harness.py", "--help"),
        "report.py --help": ("report.py", "--help"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, arguments in commands.items():
            seconds[name].append(cpu_seconds(sys.executable, *arguments))
    for name, values in seconds.items():
        print(f"{name:20} {median(values):.3f} s CPU (median of {rounds})")


if __name__ == "__main__":
    main()
