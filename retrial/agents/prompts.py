"""What agents are told of a task, in words that they share."""

from __future__ import annotations

from retrial.types import Task

TASK = """\
{instructions}

####

Use the above instructions to modify the supplied files: {files}
Edit these files and do not write others in their stead.
Keep and implement the existing function or class stubs, they will be called from unit tests.
Only use the standard library, don't suggest installing any packages.
Do not modify the test files.
"""
REPOSITORY = """\
{instructions}

####

Resolve the above issue of a repository by changing these of its files: {files}
Change no more than that needs. Test files cannot be changed.
"""
WHOLE_REPOSITORY = """\
{instructions}

####

Resolve the above issue of this repository.
Change no more than that needs. Test files cannot be changed.
"""
READ_ONLY = "\nThese files are there to be used and must not be changed:\n"
ON_ITS_OWN = """
The current folder holds the files, and what you leave in them is your answer: nothing else counts, and nobody can be
asked. The command "$RETRIAL_TEST", without arguments, runs the visible tests on them as they are. It ends with 0 when
they pass, with 1 when they fail, and with 2 when they can say nothing.
"""


def instructions(task: Task) -> str:
    """For a program that finds its way in the workspace and tests its work itself."""
    opening = WHOLE_REPOSITORY if task.whole_repository else TASK
    text = opening.format(instructions=task.problem_statement, files=", ".join(task.offered))
    if task.read_only:
        text += READ_ONLY + "".join(f"{path}\n" for path in task.read_only)
    return text + ON_ITS_OWN
