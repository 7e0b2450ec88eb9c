"""SWE-bench's grader, which its checks name: the job in the task's image, its canaries, and what its log proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrial.benchmarks.swebench import canaries, container_script, judge, reinstall
from retrial.benchmarks.swebench.official_grader import OfficialCheck, OfficialTests
from retrial.benchmarks.swebench.reinstall import Reinstall
from retrial.checks import Check, GraderData
from retrial.errors import InstallDiffers, NetworkNeeded
from retrial.grading.run_check import limits
from retrial.patches import policy
from retrial.patches.git import encode
from retrial.protocols import Grader, Sandbox
from retrial.types import Environment, Execution, Job, Status, Task, Verdict


@dataclass(frozen=True, slots=True)
class OfficialGrader:
    """Grades as the official runner does, and more strictly where that can be fooled."""

    tests: OfficialTests
    reinstall: Reinstall | None

    @property
    def required(self) -> tuple[str, ...]:
        return (*self.tests.fail_to_pass, *self.tests.pass_to_pass)

    def requiring(self, check: Check, tests: tuple[str, ...]) -> Check:
        data = OfficialCheck(tests=replace(self.tests, pass_to_pass=tests), reinstall=self.reinstall)
        return replace(check, grader_data=data)

    def plant(self, check: Check, environment: Environment, sandbox: Sandbox) -> Check:
        return canaries.plant(check, self.tests, environment, sandbox)

    def job(self, task: Task, patch: str, check: Check, sandbox: Sandbox) -> Job:
        """Only what the image does not hold goes in."""
        choice = {container_script.CHOICE: f"{self._script(task, patch, check, sandbox)}\n".encode()}
        return Job(
            environment=task.environment,
            script=check.script,
            files={**check.files, container_script.PATCH: encode(patch), **choice},
            folder=check.folder,
            limits=limits(check),
            network=check.network,
        )

    def _script(self, task: Task, patch: str, check: Check, sandbox: Sandbox) -> str:
        """Which script of the check to run."""
        if self.reinstall is None:
            return container_script.SCRIPT
        paths = policy.changed_paths(patch)
        try:
            needed = reinstall.needed(paths, self.reinstall, task.environment, sandbox, fresh=check.fresh)
        except InstallDiffers as error:
            raise InstallDiffers(f"{task.instance_id}: {error}.") from None
        return container_script.SCRIPT if needed else container_script.SCRIPT_WITHOUT_INSTALL

    def judge(self, check: Check, execution: Execution) -> Verdict:
        return judge.judge(check, self.tests, execution)

    def settle(
        self, check: Check, verdict: Verdict, reference: Callable[[], Verdict], *, is_reference: bool
    ) -> Verdict:
        if judge.misses_network(check, verdict):
            seen = verdict if is_reference else reference()
            if why := judge.network_needed(self.tests, verdict, seen):
                raise NetworkNeeded(f"{self.tests.instance_id}: {why}.")
        if not judge.disagrees_with_official(self.tests, verdict):
            return verdict
        return judge.resolve_dispute(self.tests, verdict, reference())

    def official(self, check: Check, patch: str, verdict: Verdict) -> bool | None:
        """The official runner takes the whole patch, and fetches what the package then depends on."""
        offline = not check.network and reinstall.changes_dependencies(policy.changed_paths(patch))
        return None if verdict.dropped or offline else verdict.official

    def not_passed(self, tests: Mapping[str, Status]) -> list[str]:
        return judge.not_passed(self.tests, tests)

    def log(self, verdict: Verdict) -> str:
        return container_script.read(verdict.stdout).log


def grader(data: GraderData) -> Grader:
    if not isinstance(data, OfficialCheck):
        raise TypeError(f"SWE-bench's grader cannot grade by {type(data).__name__}")
    return OfficialGrader(data.tests, data.reinstall)
