"""Options: declared once, resolved once, wrong ones said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.config import HarnessOptions, ReportOptions, parse
from retrial.errors import UsageError


def harness(*argv: object) -> HarnessOptions:
    return parse(HarnessOptions, [str(each) for each in argv], "")[0]


def refused(*argv: object) -> str:
    with pytest.raises(UsageError) as error:
        harness(*argv)
    return str(error.value)


def test_no_argument_is_the_demo_with_the_local_model() -> None:
    options = harness()
    assert (options.benchmark, options.agent, options.models, options.turns) == ("demo-python", "edit", ("local",), 2)


def test_options_repeat_and_keep_their_order() -> None:
    assert harness("-m", "b", "-m", "a:whole").models == ("b", "a:whole")


def test_a_file_gives_any_option_and_the_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("benchmark: demo\nsample_size: 10\ntimeout_seconds: 200\nfilter_category:\n  - python\n  - go\n")
    options = harness("-c", path, "-n", 3)
    assert (options.sample_size, options.timeout_seconds, options.filter_category) == (3, 200.0, ("python", "go"))


def test_an_unknown_key_names_the_nearest_known_one(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("sampel_size: 10\n")
    assert "'sampel_size'; did you mean 'sample_size'?" in refused("-c", path)


@pytest.mark.parametrize(
    "content", ["a: [1\nb: 2\n", "\tbenchmark: demo\n", "- benchmark\n", "turns: two\n", "dry_run: 3"]
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    message = refused("-c", path)
    assert str(path) in message or "--turns" in message or "--dry-run" in message


def test_a_key_without_a_value_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("task:\nmodel:\n")
    assert (harness("-c", path).task, harness("-c", path).models) == ((), ("local",))


def test_broken_yaml_says_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("benchmark: demo\nmodel: [a\nturns: 2\n")
    assert f"{path}:3" in refused("-c", path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "nowhere.yaml" in refused("-c", tmp_path / "nowhere.yaml")


def test_an_unknown_option_names_the_nearest_known_one() -> None:
    assert "'--sample'; did you mean '--sample-size'?" in refused("--sample", 3)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--turns", "two"), "whole number"),
        (("--turns", "0"), "at least 1"),
        (("--max-cost", "-1"), "at least 0"),
        (("--timeout-seconds", "nan"), "at least 1"),
        (("--test-timeout-seconds", "inf"), "at most"),
        (("-n", "1.5"), "whole number"),
        (("-n",), "expected one argument"),
    ],
)
def test_a_wrong_number_is_said_in_a_sentence(argv: tuple[str, ...], words: str) -> None:
    assert words in refused(*argv)


def test_abbreviations_are_not_guessed() -> None:
    assert "unknown argument" in refused("--bench", "demo")


def test_report_takes_a_run_or_file() -> None:
    options, rest = parse(ReportOptions, ["preds.jsonl", "-b", "demo"], "", positional="RUN|FILE")
    assert (rest, options.benchmark) == (("preds.jsonl",), "demo")
