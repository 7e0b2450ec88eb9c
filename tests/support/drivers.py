"""A ledger for one task, without a run around it."""

from __future__ import annotations

from pathlib import Path

from retrial.executors.limiter import FairLimiter
from retrial.predict.metering.driver_service import Budget, DriverService
from retrial.predict.metering.model_session import TaskLedger
from retrial.store.runs import Run
from retrial.system.shutdown import Stop


def a_ledger(folder: Path, instance_id: str, budget: Budget | None = None, limit: float | None = None) -> TaskLedger:
    """Its journal is that of a run `r` below the folder."""
    stop = Stop()
    return TaskLedger(
        instance_id, DriverService(Run(folder, "r"), budget or Budget(None), FairLimiter(1, stop), stop), limit
    )
