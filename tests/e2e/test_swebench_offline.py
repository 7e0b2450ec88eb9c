"""SWE-bench without a network: what is installed again, when that is believed, and what a missing network means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from retrial.protocols import Sandbox
from tests.conftest import Run
from tests.e2e.test_swebench_forgeries import scored
from tests.parts import ready_with_repository
from tests.support import image_task
from tests.support.image_task import CORE, EVAL_SCRIPT, FILES, GOLD, NEW_TESTS, TESTS, changed

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("engine")]

WRONG = changed("calc/core.py", CORE, CORE.replace("b - a", "a * b"))
PROJECT = FILES["pyproject.toml"]
BUMP = changed("pyproject.toml", PROJECT, PROJECT.replace('"1.0"', '"1.1"'))

# A build plugin gives the package its version; it is gone when the image is ready, as after a build in isolation.
PLUGIN = """\
def finalize(distribution):
    parse = distribution.parse_config_files

    def parsed(*args, **settings):
        parse(*args, **settings)
        if distribution.metadata.name == "calc":
            distribution.metadata.version = "7.0"

    distribution.parse_config_files = parsed
"""
PLUGIN_PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "calcversion"
version = "1"
[tool.setuptools]
py-modules = ["calcversion"]
[project.entry-points."setuptools.finalize_distribution_options"]
calcversion = "calcversion:finalize"
"""


def printed(text: str, path: str) -> str:
    """A step of a Dockerfile that writes this file."""
    return f"RUN mkdir -p {Path(path).parent} && printf '%b' '{text.replace(chr(10), chr(92) + 'n')}' >{path}\n"


VERSIONED = (
    printed(PLUGIN, "/opt/plugin/calcversion.py")
    + printed(PLUGIN_PROJECT, "/opt/plugin/pyproject.toml")
    + "RUN cd /opt/plugin && python3 -m pip install .\nRUN python3 -m pip install -e .\n"
    + "RUN python3 -m pip uninstall -y calcversion\n"
)
COMPILED = "RUN touch calc/fast.so && echo '*.so' >>.git/info/exclude\n"
COPIED = "RUN python3 -m pip install .\n"


@pytest.fixture
def engine() -> Sandbox:
    """Docker, with the image of the task."""
    return ready_with_repository()


def with_tests(tests: str, **more: Any) -> dict[str, Any]:
    """Columns of a row with these tests at the end of its own."""
    patch = changed("tests/test_calc.py", TESTS, NEW_TESTS + tests)
    script = more.pop("eval_script", EVAL_SCRIPT).replace(image_task.TEST_PATCH, patch)
    return {"eval_script": script, "test_patch": patch, **more}


def of_version(version: str) -> str:
    return (
        "\n\ndef test_version():\n    from importlib.metadata import version\n\n"
        f'    assert version("calc") == "{version}"\n'
    )


ALL = [f"tests/test_calc.py::test_{name}" for name in ("add", "add_nothing")]


def outcomes(found: Mapping[str, Any]) -> dict[str, tuple[str, bool | None]]:
    return {name: (row["outcome"], row["resolved_official"]) for name, row in found.items()}


@pytest.mark.smoke
def test_a_stray_file_does_not_change_what_is_installed(run: Run, home: Path, tmp_path: Path) -> None:
    strays = ("reproduce.sh", "NOTES", "changes/17.bugfix", "calc/data.bin", "try_it.c", "requirements-dev.txt")
    cases = {path: GOLD + diff({}, {path: b"left behind\n"}) for path in strays}
    row = with_tests(of_version("7.0"), PASS_TO_PASS=[*ALL, "tests/test_calc.py::test_version"])
    found = scored(run, home, tmp_path, cases, image=image_task.image(VERSIONED), **row)
    # Of the last one the official runner might have installed other packages.
    assert outcomes(found) == dict.fromkeys(strays[:-1], ("resolved", True)) | {strays[-1]: ("resolved", None)}


def test_an_install_that_gives_something_else_without_a_network_is_not_measured(
    run: Run, home: Path, tmp_path: Path
) -> None:
    row = {"image": image_task.image(VERSIONED), "patch": GOLD + BUMP}
    found = scored(run, home, tmp_path, {"gold": GOLD + BUMP, "wrong": WRONG + BUMP, "pure": WRONG}, **row)
    assert outcomes(found) == {
        "gold": ("install_failed", None),
        "wrong": ("install_failed", None),
        "pure": ("tests_failed", False),
    }
    for name in ("gold", "wrong"):
        assert "gives distribution calc 1.0 in" in found[name]["reason"]
        assert "instead of distribution calc 7.0 in" in found[name]["reason"]
        assert found[name]["reason"].endswith(": use --network.")


def test_a_version_that_the_patch_changes_is_installed_and_believed(run: Run, home: Path, tmp_path: Path) -> None:
    row = with_tests(of_version("1.1"), PASS_TO_PASS=[*ALL, "tests/test_calc.py::test_version"], patch=GOLD + BUMP)
    found = scored(run, home, tmp_path, {"gold": GOLD + BUMP, "not bumped": GOLD}, **row)
    # The official runner installs what the package asks for, too; here nothing can be fetched.
    assert outcomes(found) == {"gold": ("resolved", None), "not bumped": ("tests_failed", False)}


def test_a_changed_source_of_an_extension_needs_an_install_that_can_be_believed(
    run: Run, home: Path, tmp_path: Path
) -> None:
    patch = GOLD + diff({}, {"calc/fast.c": b"int fast;\n"})
    found = scored(run, home, tmp_path, {"source": patch, "none": GOLD}, image=image_task.image(VERSIONED + COMPILED))
    assert outcomes(found) == {"source": ("install_failed", None), "none": ("resolved", True)}


def test_a_package_that_is_copied_is_installed_for_every_patch(run: Run, home: Path, tmp_path: Path) -> None:
    script = EVAL_SCRIPT.replace("pip install -e .", "pip install .")
    found = scored(run, home, tmp_path, {"gold": GOLD}, eval_script=script, image=image_task.image(COPIED))
    assert outcomes(found) == {"gold": ("resolved", True)}
    (log,) = (home / "logs").rglob("test_output.txt")
    assert "Successfully installed calc-1.0" in log.read_text()


def test_another_kind_of_install_than_the_images_own_is_not_believed(run: Run, home: Path, tmp_path: Path) -> None:
    script = EVAL_SCRIPT.replace("pip install -e .", "pip install .")
    found = scored(run, home, tmp_path, {"gold": GOLD}, eval_script=script)
    assert outcomes(found) == {"gold": ("install_failed", None)}
    assert "gives nothing instead of module calc from /testbed/calc: use --network." in found["gold"]["reason"]


ONLINE = """

def test_online():
    import socket

    socket.create_connection(("retrial.invalid", 80))
"""
WORDS = "gaierror: [Errno -3] Temporary failure in name resolution"
PRINTS = changed("calc/core.py", CORE, f"raise OSError({WORDS!r})\n")


@pytest.mark.smoke
def test_a_task_that_needs_a_network_is_not_measured_without_one(run: Run, home: Path, tmp_path: Path) -> None:
    row = with_tests(ONLINE, PASS_TO_PASS=[*ALL, "tests/test_calc.py::test_online"])
    cases = {"gold": GOLD, "stray": GOLD + diff({}, {"NOTES": b"left behind\n"}), "wrong": WRONG, "prints": PRINTS}
    found = scored(run, home, tmp_path, cases, **row)
    assert outcomes(found) == {
        "gold": ("not_measured", None),
        "stray": ("not_measured", None),
        # These fail tests that the reference passes without a network.
        "wrong": ("tests_failed", None),
        "prints": ("tests_failed", None),
    }
    for name in ("gold", "stray"):
        assert "its tests need a network" in found[name]["reason"] and "use --network." in found[name]["reason"]
    (path,) = (home / "predictions").glob("*/swebench-report.json")
    assert set(json.loads(path.read_text())["failure_reasons"].values()) == {"network_unreachable"}


def test_a_patch_cannot_have_its_failure_left_out_by_printing(run: Run, home: Path, tmp_path: Path) -> None:
    found = scored(run, home, tmp_path, {"prints": PRINTS})
    assert outcomes(found) == {"prints": ("tests_failed", None)}
