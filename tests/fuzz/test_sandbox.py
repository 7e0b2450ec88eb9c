"""Changed patches, scored the whole way in a real sandbox: no crash, nothing left unmeasured, no false *resolved*."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.grading import verdict_cache
from retrial.patches.apply import diff, patched
from retrial.protocols import Sandbox
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, Scorer
from retrial.types import Outcome, Task
from tests.fuzz.mutation import changed_lines
from tests.fuzz.test_patches import CHANGES
from tests.parts import ready
from tests.tiers import LONG

pytestmark = pytest.mark.real

BATCH = 10
AT_ONCE = 2
TASKS = 3
"""Each needs a run of its reference first."""
# A smaller example of what went wrong would cost minutes to find.
few = settings(max_examples=60 if LONG else 12, phases=[Phase.generate])

Change: TypeAlias = Callable[[str], str]

# None of these adds anything, so whatever is changed in them, none is right.
FORGERIES = (
    "import os\n\nos._exit(0)\n\n\ndef add(a, b):\n    return 0\n",
    "import os, atexit\n\natexit.register(os._exit, 0)\n\n\ndef add(a, b):\n    return 0\n",
    "import os, atexit\n\natexit.register(os._exit, 1)\n\n\ndef add(a, b):\n    return 0\n",
    "class Any(int):\n    def __eq__(self, other):\n        return True\n\n    __hash__ = int.__hash__\n\n\n"
    "def add(a, b):\n    return Any(0)\n",
    "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n\n\ndef add(a, b):\n    return 0\n",
    "import linecache, re, sys\n\n\ndef add(a, b):\n    frame = sys._getframe(1)\n"
    "    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
    '    return int(re.search(r"== (-?\\d+)", line).group(1))\n',
    "import atexit, os, re, sys\n\n\ndef forge():\n"
    '    path = [a.split("=", 1)[1] for a in sys.argv if a.startswith("--junitxml=")]\n'
    '    names = re.findall(r"def (test_\\w+)", open("sum_two_test.py").read())\n'
    "    cases = \"\".join(f\"<testcase classname='sum_two_test' name='{n}'/>\" for n in names)\n"
    '    for p in path:\n        open(p, "w").write(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")\n'
    "    os._exit(1)\n\n\natexit.register(forge)\n\n\ndef add(a, b):\n    return 0\n",
    'import pytest\n\npytest.skip("no", allow_module_level=True)\n',
)
WORDS = (
    "    return 0", "    return None", "    pass", "import os", "os._exit(0)", "os._exit(1)", "raise SystemExit(0)", "",
    "    raise SystemExit(1)", "    return a", "    return Any(a)", "    return NotImplemented", "def add(a, b, c=0):",
    "    import pytest; pytest.skip('x')", "    import pytest; pytest.xfail('x')", "    raise AssertionError",
    "print('3 passed in 0.01s')", "    print('PASSED')", "del add", "def test_more(): pass", "__test__ = False",
)  # fmt: skip


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    sandbox: Sandbox = ready("bwrap")
    return Scorer(
        benchmark=Exercism(DEMO, "demo", 2),
        sandbox=sandbox,
        verdicts=verdict_cache.Verdicts(tmp_path_factory.mktemp("verdicts")),
        timeout=20,
    )


def scored(scorer: Scorer, work: list[tuple[Task, str]]) -> list[Scored]:
    def score(task: Task, patch: str) -> Scored:
        submission = Submission(instance_id=task.instance_id, model_name_or_path="x", patch=patch)
        return scorer.score(task, submission)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda each: score(*each), work))


@few
@given(batch=st.lists(st.tuples(st.sampled_from(FORGERIES), changed_lines(WORDS)), min_size=BATCH, max_size=BATCH))
def test_no_forgery_resolves_whatever_is_changed_in_it(scorer: Scorer, batch: list[tuple[str, Change]]) -> None:
    task = next(task for task in scorer.benchmark.tasks() if task.instance_id == "aider_python_sum_two")
    base = task.tree.files()
    texts = [change(text) for text, change in batch]
    work = [(task, diff(base, {**base, "sum_two.py": text.encode()})) for text in texts]
    for text, found in zip(texts, scored(scorer, work), strict=True):
        assert found.verdict.outcome.measured and not found.verdict.resolved, text


def patch_of(scorer: Scorer, task: Task, in_patch: Change | None, in_solution: Change | None) -> str:
    """The reference, changed as a patch or as a file."""
    gold = scorer.benchmark.answer(task.instance_id).patch
    if in_solution:
        base, name = task.tree.files(), task.editable[0]
        solution = patched(base, gold).files[name].decode()
        gold = diff(base, {**base, name: in_solution(solution).encode()})
    return in_patch(gold) if in_patch else gold


@few
@given(
    batch=st.lists(
        st.tuples(st.integers(0, TASKS - 1), st.none() | CHANGES, st.none() | changed_lines(WORDS)),
        min_size=BATCH,
        max_size=BATCH,
    )
)
def test_a_reference_that_was_changed_is_measured_and_the_next_is_not_harmed(
    scorer: Scorer, batch: list[tuple[int, Change | None, Change | None]]
) -> None:
    known = [task for task in scorer.benchmark.tasks() if task.language == "python"][:TASKS]
    work = [(known[number], patch_of(scorer, known[number], *changes)) for number, *changes in batch]
    # Another text each time, for a verdict that is known would not be asked for again.
    honest = patch_of(scorer, known[0], None, lambda solution: f"{solution}# {uuid4()}\n")
    for found in scored(scorer, [*work, (known[0], honest)]):
        verdict = found.verdict
        assert verdict.outcome.measured and bool(verdict.reason) != verdict.resolved
        assert not verdict.resolved or verdict.proof.startswith("canary")
    assert verdict.outcome is Outcome.RESOLVED
