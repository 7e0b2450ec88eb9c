"""Everything that can go wrong, in one tree. A failing test is not here: it is a value (`Verdict`).

RetrialError
├── UsageError            bad options or input: one sentence, exit code 2
├── PatchError            a patch is refused or does not apply; becomes a value in `grading/run_check`
├── AttemptOver           an attempt may ask no further question; what it has by then counts
│   ├── OutOfTime         its time is over
│   └── OutOfMoney        the task's money is used up
└── NotMeasured           broken machinery: never a model's failure, done again by the same command
    ├── SandboxError      a sandbox did not start or was lost
    │   └── EnvironmentMissing   the image or toolchain is not there
    │       └── NotInstalled     it is there, and tests could not be prepared in it
    │           └── InstallDiffers   without a network its package cannot be installed as it was
    ├── Overloaded        the machine was too busy for a job to get its CPU time
    ├── NetworkNeeded     tests need a network, and the run was given none
    ├── TreeError         the task's tree could not be prepared
    ├── ModelError        the provider failed: key, network, overload, a torn reply
    │   └── NotRecorded   a run that is played again has no reply to this question
    ├── BudgetSpent       the run's money is used up
    └── Stopped           the program was asked to stop: not begun, or left where it can be gone on with
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What both programs end with."""

    DONE = 0
    NOT_MEASURED = 1
    BAD_USAGE = 2
    MISSED = 3
    """`--fail-under` or `--baseline`."""
    INTERRUPTED = 130


class RetrialError(Exception):
    """Base of all; its text is a sentence for people: what, where, what to do."""


class UsageError(RetrialError):
    """Bad options or input; ends the program with exit code 2 and no traceback."""


class NotMeasured(RetrialError):
    """Our, the machine's or the provider's fault."""


class SandboxError(NotMeasured):
    """A sandbox did not start, or was lost while a job ran."""


class EnvironmentMissing(SandboxError):
    """The image or the toolchain that a task needs is not there and could not be made."""


class NotInstalled(EnvironmentMissing):
    """The image lacks something, or a changed package could not be installed in it."""


class InstallDiffers(NotInstalled):
    """A package must be installed again, and without a network that does not give what the image holds."""


class NetworkNeeded(NotMeasured):
    """Tests of a task need a network, and the run was given none."""


class Overloaded(NotMeasured):
    """A job ran out of wall time with CPU time left: other processes had the processor."""


class TreeError(NotMeasured):
    """The task's files could not be laid out."""


class ModelError(NotMeasured):
    """A model could not be asked, or its answer did not arrive whole."""


class NotRecorded(ModelError):
    """A run that is played again was asked something else here, or nothing, or ended: what follows cannot be told."""


class BudgetSpent(NotMeasured):
    """The next call could cost more than is left."""


class Stopped(NotMeasured):
    """Nothing new is started any more; says why."""


class PatchError(RetrialError):
    """A patch is refused or does not apply; says which path and why."""


class AttemptOver(RetrialError):
    """No further question is asked in this attempt."""


class OutOfTime(AttemptOver):
    """The attempt's time is over."""


class OutOfMoney(AttemptOver):
    """The next call could cost more than is left for the task."""
