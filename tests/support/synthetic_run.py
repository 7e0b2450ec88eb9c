"""A scored run of any size, written as both programs write it, with texts as long as real ones: for pages and pace."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.benchmarks.exercism.exercise import FolderTree
from retrial.chat import Message, Reply, Request, Sampling, Usage
from retrial.patches.apply import diff
from retrial.reports.analysis.cases import ScoredRow
from retrial.reports.records import Results
from retrial.reports.results import Report, results
from retrial.score.predictions_file import Submission
from retrial.score.save import scored_row
from retrial.score.scorer import Scored, eval_log
from retrial.store import journal, transcript
from retrial.store.events import AttemptEnded, AttemptStarted, Event, Question, Replied, Requested, VisibleChecked
from retrial.store.json_io import decode
from retrial.store.manifest import AgentFacts, Manifest
from retrial.store.records import PredictionSummary, attempt_record, prediction_record, summary
from retrial.store.runs import Run
from retrial.types import Environment, Outcome, Status, Task, Verdict

LANGUAGES = ("cpp", "go", "java", "javascript", "python", "rust")
MODELS = (("openai/gpt-small", "whole", 0.002), ("anthropic/claude-large", "diff", 0.021))
TEXT = """
the function returns a list of values when every item has been seen and the buffer is empty otherwise it raises an
error that names the first bad index so that callers can mend their input before they try again with another one
"""
WORDS = TEXT.split()
FAILURES = (
    *(Outcome.TESTS_FAILED,) * 6,
    *(Outcome.BUILD_FAILED, Outcome.TIMED_OUT, Outcome.PATCH_EMPTY, Outcome.PATCH_DID_NOT_APPLY, Outcome.TAMPERED),
)
NAME = "edit--openai-gpt-small--anthropic-claude-large"


def write(home: Path, name: str, size: int, *, seed: int = 7, more: str = "") -> tuple[Run, Results]:
    """The run and its results; `more` is said by every model."""
    run = Run(home, name)
    made = random.Random(seed)
    run.write_config({"program": "harness.py", "run": name, "started": "2026-01-02T03:04:05+00:00", "identity": {}})
    rows, records, bundle = list[ScoredRow](), dict[str, PredictionSummary](), list[dict[str, str]]()
    for number in range(size):
        scored, prediction, events = _one(made, number, more)
        record = prediction_record(prediction)
        run.journal(prediction.instance_id).write(b"".join(map(journal.line, events)))
        chat = transcript.markdown(prediction.instance_id, "synthetic", events)
        run.write_prediction(prediction.instance_id, record, chat)
        run.write_log(prediction.instance_id, NAME, eval_log(scored))
        rows.append(scored_row(scored))
        records[prediction.instance_id] = summary(record)
        bundle.append(
            {
                "instance_id": prediction.instance_id,
                "model_name_or_path": NAME,
                "model_patch": prediction.chosen.patch,
            }
        )
    run.write_bundle(bundle)
    found = results(_report(name, rows, records))
    run.write_results(found)
    return run, found


def _report(name: str, rows: list[ScoredRow], records: dict[str, PredictionSummary]) -> Report:
    attempts = [attempt for record in records.values() for attempt in record.all_results]
    spent = Usage(
        calls=len(attempts),
        prompt_tokens=sum(attempt.prompt_tokens for attempt in attempts),
        completion_tokens=sum(attempt.completion_tokens for attempt in attempts),
        cost=sum(attempt.cost or 0.0 for attempt in attempts),
        seconds=sum(attempt.model_seconds for attempt in attempts),
    )
    return Report(
        run=name,
        benchmark="synthetic",
        benchmark_size=len(rows) + 5,
        visible_is_hidden=True,
        scored=tuple(rows),
        not_predicted={f"go_late_{n}": "the provider did not answer in time (504)" for n in range(3)},
        skipped={"java_old_1": "needs Java 17 or newer, and there is 11"},
        records=records,
        spent=spent,
        manifest=Manifest(
            started="2026-01-02T03:04:05+00:00",
            command="python harness.py -b synthetic -m openai/gpt-small:whole -m anthropic/claude-large:diff --tries 2",
            agent=AgentFacts(isolated=True),
            identity={"models": [f"{model}:{edit_format}" for model, edit_format, _ in MODELS]},
        ),
        provenance={"benchmark": {"source": "synthetic", "digest": "0123456789abcdef"}, "retrial": "test"},
    )


def _one(made: random.Random, number: int, more: str) -> tuple[Scored, Prediction, list[Event]]:
    language = LANGUAGES[number % len(LANGUAGES)]
    instance_id = f"{language}_{'-'.join(made.choices(WORDS, k=2))}_{number:04d}"
    goes = made.choice((1, 1, 1, 2, 3))
    resolved = made.random() < (0.7 if goes == 1 else 0.3)
    outcome = Outcome.RESOLVED if resolved else made.choice(FAILURES)
    attempts = [_attempt(made, k, resolved and k == goes, outcome) for k in range(1, goes + 1)]
    prediction = Prediction(instance_id=instance_id, model_name_or_path=NAME, attempts=tuple(attempts), tries=2)
    events = [event for attempt in attempts for event in _events(made, attempt, more)]
    return _scored(made, prediction, language, outcome), prediction, events


def _attempt(made: random.Random, number: int, right: bool, outcome: Outcome) -> Attempt:
    model, edit_format, price = MODELS[(number - 1) % len(MODELS)]
    before, after = _code(made, 30), _code(made, 60)
    patch = (
        ""
        if outcome is Outcome.PATCH_EMPTY
        else diff({"solution.py": before.encode()}, {"solution.py": after.encode()})
    )
    turns = (False, True) if right and made.random() < 0.3 else (right,) if right else (False, False)
    tests = {f"tests::{_words(made, 4, '_')}": Status.PASSED if right else Status.FAILED for _ in range(8)}
    kind = Outcome.RESOLVED if right else Outcome.TESTS_FAILED
    return Attempt(
        number=number,
        round=(number + 1) // 2,
        model=model,
        edit_format=edit_format,
        seed=number - 1,
        temperature=0.0 if number < 3 else 0.7,
        patch=patch,
        counted=patch,
        edit_outcome=True,
        lint_outcome=made.random() > 0.1 or right,
        test_outcome=right,
        usage=Usage(
            calls=len(turns),
            prompt_tokens=made.randint(800, 4000),
            completion_tokens=made.randint(200, 2500),
            cost=round(price * made.uniform(0.5, 2), 6),
            seconds=made.uniform(2, 40),
        ),
        effort=AgentResult(edit_outcome=True, tests_outcomes=turns, malformed=int(made.random() < 0.1)),
        verdict=Verdict(outcome=kind, reason="" if right else "8 of 8 tests did not pass", tests=tests, seconds=1.0),
    )


def _events(made: random.Random, attempt: Attempt, more: str) -> list[Event]:
    """Of its journal: a system prompt, the task, and for every turn a reply and what the tests said."""
    number, verdict = attempt.number, attempt.verdict or Verdict(outcome=Outcome.TESTS_FAILED)
    sampling = Sampling(temperature=attempt.temperature, seed=attempt.seed, max_tokens=8192, seconds=300)
    found: list[Event] = [AttemptStarted(attempt=number, model=attempt.model, sampling=sampling)]
    messages = [
        Message(role="system", content="You are an expert programmer. " + " ".join(WORDS * 8)),
        Message(role="user", content=f"# Task\n\n{_prose(made, 12)}\n```\n{_code(made, 30)}```\n"),
    ]
    for call in range(1, attempt.usage.calls + 1):
        text = f"{_prose(made, 3)}\nsolution.py\n```python\n{_code(made, 60)}```\n\n{_prose(made, 2)}{more}"
        reply = Reply(text=text, usage=Usage(calls=1, prompt_tokens=900, completion_tokens=700, cost=0.01, seconds=4.0))
        asked = decode(Request(messages=tuple(messages)), Question)
        failed = "".join(f"FAILED tests::{_words(made, 4, '_')} - assert {call} == 2\n" for _ in range(20))
        found += [
            Requested(attempt=number, call=call, request=asked),
            Replied(attempt=number, call=call, reply=reply),
            VisibleChecked(attempt=number, call=call, key=f"{call}", verdict=replace(verdict, stdout=failed)),
        ]
        messages += [Message(role="assistant", content=text), Message(role="user", content=failed)]
    return [*found, AttemptEnded(attempt=number, result=attempt_record(attempt))]


def _scored(made: random.Random, prediction: Prediction, language: str, outcome: Outcome) -> Scored:
    tests = {f"tests::{_words(made, 4, '_')}": Status.PASSED for _ in range(made.randint(4, 20))}
    if outcome is not Outcome.RESOLVED:
        tests |= {f"tests::{_words(made, 5, '_')}": Status.FAILED for _ in range(3)}
    task = Task(
        instance_id=prediction.instance_id,
        benchmark="synthetic",
        language=language,
        problem_statement="Do it.",
        tree=FolderTree(root=Path(), paths=()),
        environment=Environment(name=language, image=language, language=language),
        editable=("solution.py",),
    )
    verdict = Verdict(
        outcome=outcome,
        reason="" if outcome is Outcome.RESOLVED else f"3 of {len(tests)} tests did not pass: {_words(made, 9, '_')}",
        tests={} if outcome is Outcome.PATCH_EMPTY else tests,
        exit_code=0 if outcome is Outcome.RESOLVED else 1,
        seconds=made.uniform(0.2, 9),
        proof="canary" if outcome is Outcome.RESOLVED else "",
        stdout="".join(f"{test} {status}\n" for test, status in tests.items()) + _prose(made, 10),
    )
    chosen = prediction.chosen.patch
    submission = Submission(instance_id=prediction.instance_id, model_name_or_path=NAME, patch=chosen)
    return Scored(submission=submission, task=task, verdict=verdict, gold_files=("solution.py",))


def _words(made: random.Random, number: int, between: str = " ") -> str:
    return between.join(made.choices(WORDS, k=number))


def _prose(made: random.Random, lines: int) -> str:
    return "".join(f"{_words(made, 18).capitalize()}.\n" for _ in range(lines))


def _code(made: random.Random, lines: int) -> str:
    """So many lines that look like a program's."""
    return "".join(f"    {made.choice(WORDS)}_{made.randint(1, 99)} = {_words(made, 3, '(')}))\n" for _ in range(lines))
