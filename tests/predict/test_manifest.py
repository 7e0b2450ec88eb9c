"""run.json of a run: written at the start, and at the end only if that changed anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial.attempts import Attempt
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.predict.manifest import RunManifest
from retrial.predict.plan import Plan, make_ladder, make_plan
from retrial.protocols import Sandbox
from retrial.sandboxes.prepare import PreparedEnvironments
from retrial.sandboxes.throttled import UsedEnvironments
from tests.support.exercises import write_exercise

READY = PreparedEnvironments()


def a_plan(folder: Path) -> Plan:
    return make_plan(HarnessOptions(benchmark=str(write_exercise(folder / "bench")), agent="null", run="r"))


def started(plan: Plan, sandbox: Sandbox) -> RunManifest:
    manifest = RunManifest(plan)
    manifest.refuse_other()
    manifest.start(make_ladder(plan), sandbox, {}, READY)
    return manifest


def an_attempt(served: str) -> Attempt:
    return Attempt(number=1, round=1, model="m", edit_format="", seed=0, temperature=0.0, served=(served,))


@pytest.mark.real
def test_it_is_not_written_again_when_nothing_has_changed(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    plan = a_plan(tmp_path)
    manifest = started(plan, bwrap)
    # A file that is written is another file.
    before = plan.run.config_path.stat().st_ino
    manifest.finish(UsedEnvironments(), READY)
    assert plan.run.config_path.stat().st_ino == before


@pytest.mark.real
def test_who_answered_is_kept_over_all_goes_at_a_run(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    plan = a_plan(tmp_path)
    for name in ("m-1", "m-2", "m-2"):
        manifest = started(plan, bwrap)
        manifest.add([an_attempt(name)])
        manifest.finish(UsedEnvironments(), READY)
    assert plan.run.manifest().served == {"m": ("m-1", "m-2")}
    assert manifest.served_changes() == ["note: m was served as m-1 and m-2"]


@pytest.mark.real
def test_other_settings_are_refused_before_anything_is_written(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    started(a_plan(tmp_path), bwrap)
    other = make_plan(HarnessOptions(benchmark=str(tmp_path / "bench"), agent="null", run="r", turns=5))
    with pytest.raises(UsageError, match="turns: 2 then, 5 now"):
        RunManifest(other).refuse_other()
