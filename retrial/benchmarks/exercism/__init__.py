"""Any folder in Exercism layout: `<language>/exercises/practice/<slug>`, or one track's `exercises/practice/<slug>`.

`.meta/config.json` names solution, test, editor and example files and may give a `test_command`;
`.docs/*.md` are the instructions. Tests, `.meta` and everything else with a dot never reach an agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from retrial import GRADING, registry
from retrial.benchmarks.exercism.exercise import (
    PRACTICE,
    Exercise,
    FolderTree,
    digests,
    folders,
    read_exercise,
    read_files,
)
from retrial.checks import Answer, Check
from retrial.errors import UsageError
from retrial.grading import verdict_cache
from retrial.language import Language, Suite
from retrial.patches import apply, clones, git
from retrial.patches.clones import RepositoryCommit
from retrial.protocols import Context
from retrial.store import integrity
from retrial.store.runs import SAFE
from retrial.system import paths
from retrial.system.paths import PROJECT
from retrial.types import Task, fingerprint

DEMO = PROJECT / "tasks" / "demo"
BUNDLED = {"demo-python": ("python",), "demo": ()}
"""Name → which of its languages; all of them when none is said."""
SOURCES = {
    "aider-polyglot": RepositoryCommit(
        url="https://github.com/Aider-AI/polyglot-benchmark", commit="7e0611e77b54e2dea774cdc0aa00cf9f7ed6144f"
    ),
    "exercism-python": RepositoryCommit(
        url="https://github.com/exercism/python", commit="f6caa44faa8fb7d0de9a54ddb5c6183e027429c6"
    ),
}
ALIASES = {"aider-ai/polyglot-benchmark": "aider-polyglot", "exercism/python": "exercism-python"}

TAKES_ANY_FOLDER = True
"""So it is asked last."""
DEMO_TRIES = 2
EXERCISE_TRIES = 1
COMMIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseSettings:
    """What the user chose for all exercises."""

    image: str = ""
    """In place of each language's own."""
    show_editor_files: bool = True
    fresh: bool = False
    """What the cache holds of this benchmark is made again."""


class Exercism:
    visible_is_hidden = True

    def __init__(
        self,
        root: Path,
        name: str,
        default_tries: int = EXERCISE_TRIES,
        *,
        source: RepositoryCommit | None = None,
        languages: tuple[str, ...] = (),
        settings: ExerciseSettings | None = None,
    ) -> None:
        # Real as the user chose it; what lies below may not lead elsewhere.
        self.root = root.resolve()
        self.name = name
        self.default_tries = default_tries
        self._source = source
        self._languages = languages or registry.names("languages")
        self._settings = settings or ExerciseSettings()

    @cached_property
    def provenance(self) -> Mapping[str, str]:
        known = [
            (task.problem_statement, task.tree.digest, self.visible(task.instance_id).digest) for task in self.tasks()
        ]
        digest = fingerprint(known)[:16]
        if self.root == DEMO.resolve():
            return {"source": self.name, "digest": digest}
        if self._source:
            return {"source": self.name, "url": self._source.url, "commit": self._source.commit, "digest": digest}
        return {"source": str(self.root), "commit": _commit(self.root), "digest": digest}

    def tasks(self) -> tuple[Task, ...]:
        return self._tasks

    def visible(self, instance_id: str, edited: Iterable[str] = (), most: int | None = None) -> Check:
        return _check(self._exercises[instance_id], hidden=False)

    def answer(self, instance_id: str) -> Answer:
        exercise = self._exercises[instance_id]
        base = read_files(exercise.root, exercise.shown)
        example = read_files(exercise.root, exercise.example)
        language = exercise.language
        reference = dict(language.reference(exercise.solution, example))
        for path in set(language.partly_editable) & set(reference) & set(base):
            # As of any patch.
            reference[path] = language.admitted(base[path], reference[path])
        patch = _reference_patch(base, {**base, **reference}, fresh=self._settings.fresh)
        return Answer(patch=patch, check=_check(exercise, hidden=True))

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        exercises = [self._exercises[instance_id] for instance_id in sorted(self._exercises)]
        languages = {exercise.language.name: exercise.language for exercise in exercises}
        # Made once for each language: of thousands of tasks they would take most of the memory.
        shared = {name: self._shared(language) for name, language in languages.items()}
        return tuple(self._task(exercise, shared[exercise.language.name]) for exercise in exercises)

    def _shared(self, language: Language) -> partial[Task]:
        """What is the same for all tasks of a language."""
        return partial(
            Task,
            benchmark=self.name,
            language=language.name,
            environment=replace(language.environment, image=self._settings.image or language.environment.image),
            new_file_globs=tuple(f"*{suffix}" for suffix in language.suffixes),
            protected_globs=(*language.tests, *language.protected_globs),
        )

    def _task(self, exercise: Exercise, shared: partial[Task]) -> Task:
        language, slug = exercise.language, exercise.root.name
        partly = tuple(path for path in exercise.solution if path in language.partly_editable)
        if exercise.needs:
            shared = partial(shared, environment=replace(shared.keywords["environment"], needs=exercise.needs))
        return shared(
            instance_id=exercise.instance_id,
            problem_statement=exercise.instructions,
            tree=FolderTree(root=exercise.root, paths=exercise.shown),
            editable=exercise.solution,
            partly_editable=partly,
            read_only=(*exercise.beside, *partly) if self._settings.show_editor_files else (),
            aliases=(f"{language.name}/{slug}", slug),
        )

    @cached_property
    def _exercises(self) -> Mapping[str, Exercise]:
        problems: list[str] = []
        found: list[Exercise] = []
        for folder, language in folders(self.root, problems):
            if language in self._languages:
                try:
                    found.append(read_exercise(folder, language))
                except UsageError as error:
                    problems.append(str(error))
        if problems:
            raise integrity.refuse(problems)
        if not found:
            raise UsageError(
                f"No exercise in {self.root}: expected <language>/{PRACTICE}/<slug> or {PRACTICE}/<slug>, "
                f"of a language that has a part: {', '.join(self._languages)}."
            )
        by_id = {exercise.instance_id: exercise for exercise in found}
        for exercise in found:
            if not SAFE.fullmatch(exercise.instance_id):
                raise UsageError(f"{exercise.root} cannot be an exercise: its name may hold letters, digits, - and _.")
            if by_id[exercise.instance_id] is not exercise:
                raise UsageError(f"{exercise.root} and {by_id[exercise.instance_id].root} are the same task by name.")
        return by_id


def make(context: Context) -> Exercism | None:
    """The bundled demo, a public set at a known commit, or a path in Exercism layout; None for anything else."""
    root = Path(context.name).expanduser()
    name = context.name if root.is_dir() else ALIASES.get(context.name.lower(), context.name)
    settings = ExerciseSettings(
        image=getattr(context.options, "image", ""),
        show_editor_files=not getattr(context.options, "hide_editor_files", False),
        fresh=getattr(context.options, "fresh", False),
    )
    if name in BUNDLED:
        return Exercism(DEMO, name, DEMO_TRIES, languages=BUNDLED[name], settings=settings)
    if source := SOURCES.get(name):
        return Exercism(clones.checkout(source), name, source=source, settings=settings)
    if not context.name or not root.is_dir():
        return None
    return Exercism(root, root.resolve().name, settings=settings)


def known() -> tuple[str, ...]:
    return (*BUNDLED, *SOURCES, "<path of a folder in Exercism layout>")


def _commit(root: Path) -> str:
    """Of the checkout that the folder is the top of; empty when it is none."""
    if not (root / ".git").exists():
        return ""
    # An untrusted repository: git would block on a FIFO in it.
    done = git.run("rev-parse", "HEAD", git_dir=root / ".git", cwd=root, seconds=COMMIT_SECONDS)
    return done.stdout.decode("ascii", "replace").strip()


def _reference_patch(base: Mapping[str, bytes], after: Mapping[str, bytes], *, fresh: bool) -> str:
    """Kept: git takes longer to make it than all else that an empty patch or a known verdict takes."""
    name = fingerprint(GRADING, digests(base), digests(after))
    path = paths.cache() / "patches" / name[:2] / f"{name}.json"
    found = None if fresh else verdict_cache.read_entry(path)
    if not isinstance(found, str):
        found = apply.diff(base, after)
        verdict_cache.write_entry(path, found)
    return found


def _check(exercise: Exercise, *, hidden: bool) -> Check:
    language, command = exercise.language, exercise.test_command
    tests = read_files(exercise.root, exercise.test)
    suite = Suite(
        solution=exercise.solution,
        tests=exercise.test,
        contents=tests,
        command=command,
        optimised=exercise.optimised,
        hidden=hidden,
    )
    return Check(
        script=language.script(suite),
        files=language.checked(tests),
        result_parser=language.command_parser if command else language.result_parser,
        timeout=language.timeout,
        folder=exercise.root.name,
        lint=not hidden,
        allow_skips=not hidden,
        error_line_pattern=language.error_line_pattern,
        failure_exit_codes=language.failure_exit_codes,
        reports_at_end=language.reports_at_end,
        prebuild=language.prebuild(tests) if language.prebuild else None,
    )
