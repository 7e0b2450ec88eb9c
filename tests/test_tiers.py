"""The tiers of the test suite: what each of them runs, and what it says of the rest."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from itertools import product

import pytest

from retrial import registry
from tests.conftest import PROJECT
from tests.red_team.test_verdicts import DECIDED, STANDING
from tests.tiers import scope

NOWHERE = "unix:///nonexistent/docker.sock"


def suite(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on files of this suite, in one process, as a tier does."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("RETRIAL_", "PYTEST_"))}
    # In a folder of its own: pytest tidies up the one that all its runs share.
    with tempfile.TemporaryDirectory() as folder:
        settings = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder}/pytest"]
        command = [sys.executable, "-m", "pytest", *settings, *arguments]
        return subprocess.run(command, cwd=PROJECT, env={**others, **environment}, capture_output=True, text=True)


def test_a_tier_leaves_out_the_tests_of_larger_ones_and_names_the_command_that_runs_them() -> None:
    done = suite("tests/e2e/test_local_model.py", "tests/e2e/test_trust.py", RETRIAL_TIER="check")
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
    assert "3 tests are not in this run. To run them: make test\n" in done.stdout
    assert "2 tests are not in this run. To run them: make test-all\n" in done.stdout


def test_after_a_smaller_tier_only_its_property_tests_are_repeated_with_more_examples() -> None:
    files = ("tests/benchmarks/test_selection.py", "tests/fuzz/test_predictions.py", "--collect-only")
    before = suite(*files, RETRIAL_TIER="check").stdout
    after = suite(*files, RETRIAL_TIER="all", RETRIAL_AFTER="check").stdout
    assert "tests/benchmarks/test_selection.py::" in before and "tests/fuzz/test_predictions.py::" in before
    assert "tests/benchmarks/test_selection.py::" not in after and "tests/fuzz/test_predictions.py::" in after
    assert "To run them: make check\n" in after


def test_without_an_engine_its_tests_are_skipped_with_the_way_to_get_one() -> None:
    done = suite("tests/grading/test_visible_check.py", DOCKER_HOST=NOWHERE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f" skipped, docker: no Docker engine answers at {NOWHERE}. To run them: scripts/engine-up; then make" in (
        done.stdout
    )


def test_a_part_that_is_required_and_missing_fails_its_tests() -> None:
    done = suite("tests/grading/test_visible_check.py", DOCKER_HOST=NOWHERE, RETRIAL_REQUIRE="docker")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "docker is required here: no Docker engine answers" in done.stdout


def test_a_tier_that_does_not_exist_is_refused_in_one_sentence() -> None:
    done = suite("tests/benchmarks/test_selection.py", RETRIAL_TIER="quick")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "RETRIAL_TIER=quick is not a tier; use check, test, all." in done.stderr


def test_a_required_part_that_does_not_exist_is_refused_in_one_sentence() -> None:
    done = suite("tests/benchmarks/test_selection.py", RETRIAL_REQUIRE="docker, dokcer")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "RETRIAL_REQUIRE names unknown parts: dokcer; use docker, " in done.stderr


def test_a_worker_that_ends_before_it_has_collected_breaks_nothing() -> None:
    done = suite("-n", "1", "tests/test_nothing.py")
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr


def test_the_second_tier_has_a_real_path_through_every_part() -> None:
    files = ("tests/contracts", "tests/red_team/test_verdicts.py", "tests/e2e")
    ids = suite(*files, "--collect-only", RETRIAL_TIER="test").stdout
    for kind in ("sandboxes", "agents", "models", "formats", "executors"):
        assert [name for name in registry.names(kind) if f"[{name}]" not in ids] == [], kind
    for case in STANDING.values():
        if case.outcome[0] in DECIDED:
            assert f"[{case.name}-bwrap]" in ids
    assert {(case.language, case.outcome[0]) for case in STANDING.values()} >= set(
        product(registry.names("languages"), DECIDED)
    )
    for file in ("kills", "shards", "trust", "compare", "swebench", "page", "local_model"):
        assert f"tests/e2e/test_{file}.py::" in ids, file


def test_tests_are_skipped_only_for_a_part_that_is_missing() -> None:
    skips = {"skip", "skipif", "importorskip", "xfail"}
    found = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for path in (PROJECT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in skips
    ]
    assert [place for place in found if not place.startswith("tests/parts.py:")] == []


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("tests/a.py::test_a", "tests/a.py::test_b[x]", True),
        ("tests/a.py::test_a", "tests/b.py::test_a", False),
        ("tests/e2e/test_host.py::test_a[docker]", "tests/e2e/test_host.py::test_a[bwrap]", True),
        ("tests/a.py::test_a[docker]", "tests/a.py::test_a[bwrap]", False),
        ("tests/a.py::test_a[go-docker-hidden]", "tests/a.py::test_b[docker]", True),
        ("tests/e2e/test_ray.py::test_a", "tests/contracts/test_executors.py::test_b[ray]", True),
    ],
)
def test_tests_that_share_a_sandbox_or_a_cluster_are_run_by_one_worker(one: str, other: str, together: bool) -> None:
    assert (scope(one) == scope(other)) is together
