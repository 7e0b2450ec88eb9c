"""The README of a folder to hand in: what was run, what came of it, and what is known of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrial.reports.exports import objections
from retrial.reports.exports.cases import made_elsewhere, model_names
from retrial.reports.exports.text import NAMED, SHOWN, code
from retrial.store.runs import Run

TODO = "TODO"
"""What only the submitter knows begins so."""
SPLITS = {
    "swe-bench": "test",
    "swe-bench-lite": "lite",
    "swe-bench-verified": "verified",
    "swe-bench-multilingual": "multilingual",
}
RESTRICTED = ("verified", "multilingual")
"""Since 18 November 2025 only academic and research teams with a technical report may hand in there."""
FACTS = ("agent", "tries", "turns", "reflections", "temperature", "retry_temperature", "seed", "max_tokens")


def render(run: Run, content: Mapping[str, Any], against: Sequence[str]) -> str:
    config = run.config() if run.exists() else {}
    lines = [
        f"# {TODO}: the system's name",
        "",
        f"{TODO}: a few sentences about the system, and a link to its technical report.",
        "",
        *_result(content, against),
        "## What was run",
        "",
        *_run(run, content, config),
        "",
        "## Checklist",
        "",
        *_checklist(run, content, config),
        "",
        "## Where it goes",
        "",
        *_place(run, content),
    ]
    return "\n".join(lines) + "\n"


def _result(content: Mapping[str, Any], against: Sequence[str]) -> Iterator[str]:
    whole, rate = content["rate_of_benchmark"], content["rate"]
    yield "## Result"
    yield ""
    if not whole["of"]:
        yield "There is no rate."
    else:
        yield from _rates(whole, rate)
    yield ""
    if against:
        yield "**What stands against submitting this:**"
        yield ""
        yield from (f"- {each}" for each in against)
        yield ""


def _rates(whole: Mapping[str, Any], rate: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"Resolved: **{whole['percent']} %** ({whole['resolved']} of all {whole['of']} tasks; 95 % interval "
        f"{whole['low']} to {whole['high']}), what is missing counted as unresolved."
    )
    yield f"Of the {rate['of']} tasks that were measured: {rate['percent']} %."


def _run(run: Run, content: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    identity, provenance = config.get("identity", {}), content["provenance"]
    benchmark, sandbox = provenance.get("benchmark", {}), provenance.get("sandbox", {})
    yield f"- run {code(run.name)}, started {code(config.get('started', 'unknown'))}"
    yield f"- benchmark {code(content['benchmark'])}, state {code(benchmark.get('digest', 'unknown'))}"
    yield f"- predictions as {', '.join(code(name, NAMED) for name in model_names(content)) or 'none'}"
    if config.get("command"):
        yield f"- command {code(config['command'], SHOWN * 5)}"
    if models := identity.get("models"):
        yield f"- models {', '.join(code(name, NAMED) for name in models)}"
    known = [f"{name} {code(identity[name])}" for name in FACTS if name in identity]
    yield from ([f"- {', '.join(known)}"] if known else [])
    yield (
        f"- scored by Retrial {provenance.get('retrial', '')} in {code(sandbox.get('sandbox', 'unknown'))} "
        f"{code(sandbox.get('version', ''))}"
    )


def _checklist(run: Run, content: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    """Ticked is only what is sure."""
    yield _tick(*_attempts(content))
    yield _tick(*_hidden_tests(content))
    yield _tick(*_hints(content))
    yield _tick(*_web(content, config))
    yield _tick(*_isolated(content))
    yield _tick(False, f"{TODO}: a technical report.")


def _tick(sure: bool, text: str) -> str:
    return f"- [{'x' if sure else ' '}] {text}"


def _attempts(content: Mapping[str, Any]) -> tuple[bool, str]:
    if made_elsewhere(content):
        return False, f"{TODO}: in how many attempts the predictions were made is not known here."
    if content["rate"]["attempts"] == "1":
        return True, "pass@1: one attempt at each task."
    if objections.pass_at_k(content):
        return False, "Not allowed: tasks were retried until the acceptance tests passed, which is pass@k."
    return True, "best@k: of several attempts one was chosen, by visible tests and lint alone (attempts: 2+)."


def _hidden_tests(content: Mapping[str, Any]) -> tuple[bool, str]:
    if made_elsewhere(content):
        return False, f"{TODO}: whether hidden tests were known is not known here."
    if objections.hidden_known(content):
        return False, "Not allowed: visible tests were chosen by the files of the hidden ones."
    if content["rate"]["visible_is_hidden"]:
        return False, "The visible tests are the acceptance tests."
    return True, "Nothing of the hidden tests (FAIL_TO_PASS, PASS_TO_PASS) was known to the agent."


def _hints(content: Mapping[str, Any]) -> tuple[bool, str]:
    if made_elsewhere(content):
        return False, f"{TODO}: whether hints were used is not known here."
    return True, "Hints of the data set were not used: Retrial does not read them."


def _web(content: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[bool, str]:
    agent = config.get("agent", {}).get("name")
    if agent == "edit" and not made_elsewhere(content):
        return True, "No browsing: the model had no tool that reaches the web. (What its provider does is not known.)"
    return False, f"{TODO}: the agent could reach the network; whether it looked anything up is not known here."


def _isolated(content: Mapping[str, Any]) -> tuple[bool, str]:
    known = content["agent_isolated"]
    if known is None:
        return False, f"{TODO}: whether the agent saw only its task is not known here."
    text = "The agent saw nothing but what it was given." if known else "The agent was not isolated."
    return bool(known), text


def _place(run: Run, content: Mapping[str, Any]) -> Iterator[str]:
    if not objections.official(run):
        yield f"{code(content['benchmark'])} is none of the benchmarks that SWE-bench/experiments takes."
        return
    source = str(content["provenance"].get("benchmark", {}).get("source", ""))
    split = SPLITS.get(source.removesuffix(":test"), TODO)
    yield f"To `evaluation/{split}/YYYYMMDD_name/` of SWE-bench/experiments, with a date and a name of yours."
    yield f"Fill in every {TODO}; `assets` in `metadata.yaml` say where logs and trajectories were uploaded."
    if split in RESTRICTED:
        yield "Since 18 November 2025 it takes academic and research teams with a technical report only."
