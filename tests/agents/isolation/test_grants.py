"""What an agent is given of this host, as the options say it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from retrial import agents
from retrial.agents.isolation import grants
from retrial.agents.isolation.grants import Grants
from retrial.errors import UsageError
from retrial.options import HarnessOptions


@pytest.fixture(autouse=True)
def without_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in grants.CERTIFICATES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_given_unless_it_is_named() -> None:
    given = grants.read(HarnessOptions())
    assert (given.paths, dict(given.variables)) == ((), {})


def test_certificates_that_the_environment_names_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "gone.pem"))
    monkeypatch.setenv("HTTPS_PROXY", "http://me:password@proxy")
    given = grants.read(HarnessOptions())
    assert (given.paths, dict(given.variables)) == ((bundle,), {"SSL_CERT_FILE": str(bundle)})


def test_a_variable_has_its_value_here_or_the_one_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMED", "here")
    given = grants.read(HarnessOptions(agent_env=("NAMED", "GIVEN=a=b", "EMPTY=")))
    assert given.variables == {"NAMED": "here", "GIVEN": "a=b", "EMPTY": ""}
    assert given.describe()["variables"] == ["EMPTY", "GIVEN", "NAMED"]


@pytest.mark.parametrize("path", ["/", "/tmp", "/run", "/run/retrial", "/proc", "/proc/self", "/dev"])
def test_what_the_agent_has_of_its_own_cannot_be_covered(path: str) -> None:
    if Path(path).exists():
        with pytest.raises(UsageError, match="something of its own"):
            grants.read(HarnessOptions(agent_path=(path,)))


@pytest.mark.parametrize("place", [".", "work", "link"])
def test_where_other_agents_are_at_work_cannot_be_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "agent").mkdir(parents=True)
    (tmp_path / "link").symlink_to(work)
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    with pytest.raises(UsageError, match="other agents are at work"):
        grants.read(HarnessOptions(agent_path=(str(tmp_path / place),)))
    assert grants.read(HarnessOptions(agent_path=(str(work / "agent"),))).paths == (work / "agent",)


@pytest.mark.parametrize("place", ["cache", "cache/clones", "home/predictions", "home/logs/run", "bench", "link"])
def test_where_answers_are_kept_cannot_be_named(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RETRIAL_HOME", str(tmp_path / "home"))
    (tmp_path / "link").symlink_to(tmp_path / "cache" / "clones")
    for folder in ("cache/clones", "home/predictions", "home/logs/run", "bench"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(UsageError, match="which no agent may see"):
        grants.read(HarnessOptions(agent_path=(str(tmp_path / place),), benchmark=str(tmp_path / "bench")))


def test_secrets_below_what_is_shown_are_covered_by_their_path_there(tmp_path: Path) -> None:
    (tmp_path / "real" / "cache").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    given = Grants(secrets=(tmp_path / "real" / "cache", tmp_path / "real" / "none"))
    assert given.covered((tmp_path / "link",)) == (str(tmp_path / "link" / "cache"),)
    assert given.covered((tmp_path / "real" / "cache",)) == ()


def test_what_is_in_view_anyway_is_not_shown_twice_but_what_was_covered_is(tmp_path: Path) -> None:
    given = Grants(paths=(tmp_path, tmp_path / "bin", Path("/usr/bin")), secrets=(tmp_path / "cache",))
    assert given.shown((tmp_path / "cache" / "tool",), ("/usr",)) == (tmp_path, tmp_path / "cache" / "tool")


def test_the_command_line_is_kept_without_the_values_it_gives() -> None:
    argv = ("--agent-env", "KEY=a=b", "--agent-env=OTHER=c\nd", "--agent-env", "NAME", "--agent-env=NAME", "--run=a=b")
    assert agents.as_kept(argv) == (
        "--agent-env", "KEY=…", "--agent-env=OTHER=…", "--agent-env", "NAME", "--agent-env=NAME", "--run=a=b"
    )  # fmt: skip
