"""SWE-bench: real repositories, each task in an image of its own, graded as the official runner grades.

`-b` takes a name below, a Hugging Face id, a file of rows, or a checked-out task repository; `:dev` behind it takes
another split than `test`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from retrial.benchmarks.swebench import container_script, nearby_tests, official_grader, reinstall, task_repo
from retrial.benchmarks.swebench import eval_script as eval_scripts
from retrial.benchmarks.swebench import rows as dataset_rows
from retrial.benchmarks.swebench.official_grader import GRADER, OfficialCheck, OfficialTests
from retrial.benchmarks.swebench.reinstall import Reinstall
from retrial.benchmarks.swebench.rows import DatasetRow, Origin
from retrial.benchmarks.swebench.sources import HUB_ID, SUFFIXES
from retrial.checks import Answer, Check, Prebuild
from retrial.errors import UsageError
from retrial.options import NEARBY
from retrial.patches import clones, policy
from retrial.patches.clones import RepositoryCommit, RepositoryTree
from retrial.patches.parser import normalise
from retrial.protocols import Context
from retrial.store.runs import file_name
from retrial.types import Environment, Limits, Task

TASKS = RepositoryCommit(
    url="https://github.com/SWE-bench/swe-bench-tasks", commit="3d07b464b7b311a0cbfb5ed5b2d8a3b96f84a33d"
)
"""Every task of the first three, with its eval script; also what old rows are completed from."""
NAMED = {
    "swe-bench": "SWE-bench/SWE-bench",
    "swe-bench-lite": "SWE-bench/SWE-bench_Lite",
    "swe-bench-verified": "SWE-bench/SWE-bench_Verified",
}
HUB = {"swe-bench-multilingual": "SWE-bench/SWE-bench_Multilingual"}
SPLIT = "test"

TREE = "/testbed"
SECONDS = 1800.0
"""For the acceptance tests, and for all tests of a repository: the official runner's limit."""
VISIBLE_SECONDS = 300.0
"""Of CPU time, for the tests that are run after each turn."""
PATIENCE = 20.0
"""Times as much wall time: what gets less than a twentieth of a core is starved, or waits for something else."""
LIMITS = Limits(memory_mb=8192, processes=4096, disk_mb=8192, output_bytes=64 << 20)
"""Real suites; the official runner has no limits at all."""

LOOK = "look.sh"
FETCHING = f'cd "$RETRIAL_TREE" && exec bash "$OLDPWD/{LOOK}"'
TRIAL, STATE = "install.sh", "state.py"
TRYING = f'export {container_script.JOB}="$PWD" && cd "$RETRIAL_TREE" && exec bash "${container_script.JOB}/{TRIAL}"'
_SCRIPTS = {container_script.SCRIPT: False, container_script.SCRIPT_WITHOUT_INSTALL: True}
"""Name in the job → whether the package need not be installed again."""
ASSETS = "assets"
"""Where in a job binary test files lie, which no patch can carry."""
VISIBLE = (NEARBY, "all", "original", "none")

RESERVED = (
    # Tests, by name and by place. A nested `test` or `testing` is left alone: django/test and sympy/testing are source.
    "test_*.py", "*_test.py", "tests.py", "tests/*", "*/tests/*", "test/*", "testing/*",
    "*_test.go", "src/test/*", "*/src/test/*", "__tests__/*", "*/__tests__/*", "*.test.*", "*.spec.*",
    "spec/*", "*/spec/*", "*_spec.rb",
    # What decides which tests are run, and how; `setup.py` is run before them, as root.
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml", "setup.py",
    "noxfile.py", ".coveragerc", "runtests.py", "bin/test", "bin/doctest", "sitecustomize.py", "usercustomize.py",
    "*.pth", "*.pyc", "*.dist-info/*", "*.egg-info/*", ".gitattributes", ".npmrc", "jest.config.*", "vitest.config.*",
    "karma.conf.*", ".mocharc*", ".rspec", "phpunit.xml*",
)  # fmt: skip
"""Dropped from a patch unless the reference changes the same file."""


class SweBench:
    visible_is_hidden = False
    default_tries = 3

    def __init__(
        self,
        name: str,
        rows: Iterable[DatasetRow],
        provenance: Mapping[str, str] | None = None,
        *,
        visible_tests: str = NEARBY,
        network: bool = False,
    ) -> None:
        self.name = name
        self._rows = {row.instance_id: row for row in rows}
        self._provenance = provenance or {"source": name}
        self._visible_tests = visible_tests
        self._network = network

    @cached_property
    def provenance(self) -> Mapping[str, str]:
        known = self._provenance
        # A public commit says it all; else every row is read.
        digest = known.get("commit") or dataset_rows.digest(self._rows.values())
        return {**known, "digest": digest[:16]}

    def tasks(self) -> tuple[Task, ...]:
        return self._tasks

    def visible(self, instance_id: str, edited: Iterable[str] = (), most: int | None = None) -> Check | str:
        row = self._rows[instance_id]
        secrets = row.secrets()
        hidden_tests = policy.changed_paths(secrets.test_patch)
        if self._visible_tests == "none":
            return "no visible tests were asked for"
        if not eval_scripts.bare_command(secrets.eval_script, hidden_tests):
            return "the test command cannot be given other tests"
        chosen = self._chosen(row, hidden_tests, edited)
        if not chosen and self._visible_tests != "all":
            return "no visible tests belong to what was edited"
        named = eval_scripts.named_as(secrets.eval_script, hidden_tests)
        tests = tuple(map(named, chosen[:most]))
        written = partial(eval_scripts.visible, secrets.eval_script, tests, hidden_tests, network=self._network)
        seconds = SECONDS if self._visible_tests == "all" else VISIBLE_SECONDS
        check = self._check(secrets.eval_script, written, _required(row), seconds, lint=True)
        return replace(check, patience=PATIENCE, chosen=chosen[:most])

    def answer(self, instance_id: str) -> Answer:
        row = self._rows[instance_id]
        secrets = row.secrets()
        folder = ASSETS if secrets.test_assets else ""
        written = partial(eval_scripts.hidden, secrets.eval_script, network=self._network, assets=folder)
        required = replace(
            _required(row),
            fail_to_pass=secrets.fail_to_pass,
            pass_to_pass=secrets.pass_to_pass,
            eval_type=row.eval_type,
            files=_test_files(row, secrets.test_patch),
        )
        assets = {f"{ASSETS}/{path}": content for path, content in secrets.test_assets.items()}
        check = self._check(secrets.eval_script, written, required, SECONDS)
        look = eval_scripts.looking(secrets.eval_script, required.files)
        fetched = Prebuild(script=FETCHING, files={LOOK: look.encode()}) if required.files else None
        return Answer(
            patch=normalise(secrets.patch), check=replace(check, files={**check.files, **assets}, prebuild=fetched)
        )

    def _chosen(self, row: DatasetRow, hidden_tests: Iterable[str], edited: Iterable[str]) -> tuple[str, ...]:
        """The test files to run, as they are at the base commit; none for the whole suite."""
        if self._visible_tests == "original":
            return tuple(path for path in _tree(row).some(hidden_tests) if policy.matches(path, RESERVED))
        if self._visible_tests == NEARBY:
            return nearby_tests.choose(tuple(edited), _tree(row).files())
        return ()

    def _check(
        self,
        eval_script: str,
        written: Callable[..., str],
        required: OfficialTests,
        seconds: float,
        *,
        lint: bool = False,
    ) -> Check:
        return Check(
            script=container_script.RUN,
            files={name: written(lean=lean).encode() for name, lean in _SCRIPTS.items()},
            result_parser="",
            timeout=seconds,
            lint=lint,
            allow_skips=lint,
            grader=GRADER,
            grader_data=OfficialCheck(tests=required, reinstall=self._reinstall(eval_script)),
            limits=LIMITS,
            network=self._network,
        )

    def _reinstall(self, eval_script: str) -> Reinstall | None:
        text = "" if self._network else eval_scripts.trial(eval_script, STATE)
        if not text:
            return None
        files = {TRIAL: text.encode(), STATE: reinstall.STATE.encode()}
        trial = Prebuild(script=TRYING, files=files, limits=replace(LIMITS, seconds=SECONDS))
        return Reinstall(trial=trial, always=eval_scripts.copies(eval_script))

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        languages = official_grader.parsers()
        return tuple(self._task(self._rows[name], languages) for name in sorted(self._rows))

    def _task(self, row: DatasetRow, languages: Mapping[str, str]) -> Task:
        if row.log_parser not in languages:
            raise UsageError(
                f"{row.instance_id} wants the log parser '{row.log_parser}', which swebench does not have."
            )
        return Task(
            instance_id=row.instance_id,
            benchmark=self.name,
            language=languages[row.log_parser],
            problem_statement=row.problem_statement,
            tree=_tree(row),
            environment=_environment(row),
            editable=(),
            whole_repository=True,
            protected_globs=RESERVED,
            aliases=(row.instance_id.partition("__")[2],),
        )


def _required(row: DatasetRow) -> OfficialTests:
    return OfficialTests(parser=row.log_parser, instance_id=row.instance_id, repo=row.repo, version=row.version)


def _test_files(row: DatasetRow, test_patch: str) -> tuple[str, ...]:
    """Those that a canary can go into: modules of Python, whose runners we know."""
    python = official_grader.parsers().get(row.log_parser) == "python"
    return tuple(path for path in policy.changed_paths(test_patch) if python and path.endswith(".py"))


def _environment(row: DatasetRow) -> Environment:
    # The recipe's text, not its place: the reference lies beside it.
    recipe = task_repo.recipe(row.recipe) if row.recipe else ""
    return Environment(name=row.instance_id, image=row.image, language="", tree=TREE, recipe=recipe)


def _tree(row: DatasetRow) -> RepositoryTree:
    return RepositoryTree(repository=row.repo, commit=row.base_commit)


def make(context: Context) -> SweBench | None:
    """None for anything that is no benchmark of this kind."""
    options = context.options
    wanted = getattr(options, "visible_tests", NEARBY)
    found = _origin(context.name)
    if found is None:
        return None
    if wanted not in VISIBLE:
        raise UsageError(f"--visible-tests must be one of {', '.join(VISIBLE)}, not '{wanted}'.")
    if getattr(options, "image", ""):
        raise UsageError("--image is for exercises: every SWE-bench task has an image of its own.")
    known_as, origin, provenance = found
    return SweBench(
        file_name(known_as),
        dataset_rows.read(origin),
        provenance,
        visible_tests=wanted,
        network=getattr(options, "network", False),
    )


def known() -> tuple[str, ...]:
    return (*NAMED, *HUB, "<Hugging Face id>", "<.json, .jsonl or .parquet file>", "<SWE-bench task repository>")


def _origin(name: str) -> tuple[str, Origin, dict[str, str]] | None:
    """What runs call a benchmark of this name (of a path the last part), where its rows are, and what to say of it."""
    path = Path(name).expanduser()
    if dataset_rows.claims(path) or path.is_file() or path.suffix.lower() in SUFFIXES:
        # A file that is missing, or of another kind, is refused where it is read.
        known_as = path.stem if path.is_file() else path.resolve().name
        return known_as, Origin(where=str(path), complete=_all_tasks), {"source": str(path.resolve())}
    plain, _, part = name.partition(":")
    if (path := Path(plain).expanduser()).is_dir() and dataset_rows.claims(path):
        dataset = NAMED.get(part, part if "/" in part else "")
        split = SPLIT if dataset else part
        origin = Origin(where=str(path), dataset=dataset, split=split, complete=_all_tasks)
        return f"{path.resolve().name}:{part}", origin, {"source": f"{path.resolve()}:{part}"}
    split = part or SPLIT
    if plain in NAMED:
        origin = Origin(where=str(_all_tasks()), dataset=NAMED[plain], split=split)
        return name, origin, {"source": name, "url": TASKS.url, "commit": TASKS.commit}
    if plain in HUB or ("/" in plain and HUB_ID.fullmatch(plain) and not path.exists()):
        return name, Origin(where=HUB.get(plain, plain), split=split, complete=_all_tasks), {"source": name}
    return None


def _all_tasks() -> Path:
    return clones.checkout(TASKS)
