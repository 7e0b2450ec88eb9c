"""Options: declared once, resolved once, wrong ones said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.cli.arguments import parse
from retrial.errors import UsageError
from retrial.options import PER_MODEL, HarnessOptions, ModelChoice, ReportOptions


def harness(*argv: object) -> HarnessOptions:
    return parse(HarnessOptions, [str(each) for each in argv], "")[0]


def refused(*argv: object) -> str:
    with pytest.raises(UsageError) as error:
        harness(*argv)
    return str(error.value)


def test_no_argument_is_the_demo_with_the_local_model() -> None:
    options = harness()
    assert (options.benchmark, options.agent, options.turns) == ("demo-python", "edit", 2)
    assert options.models == (ModelChoice(name="local"),)


def test_options_repeat_and_keep_their_order() -> None:
    assert [choice.name for choice in harness("-m", "b", "-m", "a:whole").models] == ["b", "a:whole"]


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
    assert (harness("-c", path).task, harness("-c", path).model) == ((), ())


LADDER = """
temperature: 0.2
model:
  - plain
  - {name: "gpt-5:diff", temperature: 1, reasoning_effort: high, extra_body: {top_p: 0.9}, request_timeout_seconds: 600,
     api_base: "http://127.0.0.1:1/v1", price: 1.25/10, max_tokens: 100, seed: 7, retry_temperature: 1}
"""


def test_a_file_gives_each_model_options_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(LADDER)
    options = harness("-c", path, "--max-tokens", 50)
    plain, own = (options.of(choice) for choice in options.models)
    assert [choice.name for choice in options.models] == ["plain", "gpt-5:diff"]
    assert (plain.temperature, plain.seed, plain.reasoning_effort, plain.price) == (0.2, 0, "", "")
    assert (own.temperature, own.retry_temperature, own.seed, own.reasoning_effort) == (1.0, 1.0, 7, "high")
    assert (own.extra_body, own.request_timeout_seconds, own.price) == ('{"top_p": 0.9}', 600.0, "1.25/10")
    # The command line wins, for all of them.
    assert (plain.max_tokens, own.max_tokens) == (50, 50)


def test_a_model_on_the_command_line_replaces_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(LADDER)
    assert harness("-c", path, "-m", "other").models == (ModelChoice(name="other"),)


@pytest.mark.parametrize("content", ["model: one\n", "model: {name: one}\n", "model: [one]\n"])
def test_one_model_needs_no_list(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    assert harness("-c", path).models == (ModelChoice(name="one"),)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{name: m, temprature: 1}", "model 'm' has an unknown key 'temprature'; did you mean 'temperature'?"),
        ("{name: m, tries: 1}", "unknown key 'tries'"),
        ("{temperature: 1}", "needs a name"),
        ("{name: m, temperature: hot}", "--temperature must be a number"),
        ("{name: m, extra_body: [1]}", "--extra-body must be a JSON object"),
        ("{name: m, seed: -1}", "model 'm': --seed must be at least 0"),
        ("{name: m, reasoning_effort: off}", "model 'm': --reasoning-effort must be text (in quotes if need be), not"),
        ("{name: m, reasoning_effort: [low]}", "--reasoning-effort must be text"),
        ("[m]", "--model must be text"),
    ],
)
def test_a_wrong_option_of_one_model_is_said_in_a_sentence(tmp_path: Path, entry: str, words: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"model: [{entry}]\n")
    assert words in refused("-c", path)


def test_every_option_of_one_model_is_one_of_the_program() -> None:
    assert set(PER_MODEL) <= set(HarnessOptions.__dataclass_fields__)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('{"a": NaN}', "must be a JSON object"),
        ('{"max_tokens": 9}', "may not have 'max_tokens': use --max-tokens"),
        ('{"n": 4}', "may not have 'n'"),
        ('{"stream": true}', "may not have 'stream'."),
    ],
)
def test_an_extra_body_is_an_object_that_leaves_alone_what_is_ours(body: str, words: str) -> None:
    assert words in refused("--extra-body", body)


def test_the_same_extra_body_is_the_same_text() -> None:
    first, second = harness("--extra-body", '{"a": 1, "b": [2]}'), harness("--extra-body", '{"b":[2],"a":1}')
    assert first.extra_body == second.extra_body != ""
    assert harness("--extra-body", "{}").extra_body == ""


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
