"""Going on with a task where an earlier go left it: what ended is kept, what was answered is not asked again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from retrial.attempts import Attempt
from retrial.chat import Reply, Request
from retrial.errors import OutOfMoney, OutOfTime
from retrial.store import attempt_log
from retrial.store.attempt_log import RecordedAttempt, first_difference, question
from retrial.store.events import Event
from retrial.store.records import attempt_of, attempt_record
from retrial.system.console import say

_LOG = logging.getLogger(__name__)


class Earlier:
    """What earlier goes at one task left, attempt by attempt."""

    def __init__(self, events: Sequence[Event]) -> None:
        found = attempt_log.after_discarded(events)
        self.verdicts = attempt_log.verdicts(events)
        """Of the visible check, by its key."""
        self._found = attempt_log.split_by_attempt(found)
        self._verdicts = attempt_log.verdicts(found)

    def attempt(self, blank: Attempt) -> Resumed:
        """What there is of this attempt."""
        found = attempt_log.latest(self._found, blank.number)
        same = found is not None and found.begun.model == blank.model
        go = attempt_log.recorded_attempt(found) if found and same else RecordedAttempt(number=blank.number)
        return Resumed(go, blank, self._verdicts)


class Resumed:
    """What an earlier go left of one attempt; nothing at first."""

    def __init__(self, go: RecordedAttempt, blank: Attempt, verdicts: Collection[str] = ()) -> None:
        self._go, self._blank = go, blank
        self._noted = {(call, key) for call, key in go.checks if key in verdicts}
        self._holds = True

    @property
    def answered(self) -> int:
        """Questions that need not be asked again."""
        return self._go.answered

    @property
    def out_of_money(self) -> bool:
        """Whether the task's money ended it."""
        return self._go.over is not None and self._go.over.kind == OutOfMoney.__name__

    def ended(self) -> Attempt | None:
        """The attempt as it ended then; None if it did not, was not measured, or is another's."""
        if self._go.ended is None or self._go.error:
            return None
        record, counted = self._go.ended.result, self._go.ended.counted
        try:
            found = attempt_of(record, record.model_patch if counted is None else counted)
        except ValueError:
            # Of another version of ours.
            return None
        whole = attempt_record(found) == record
        return found if whole and _attempt_key(found) == _attempt_key(self._blank) else None

    def reply(self, request: Request) -> Reply | None:
        """What was replied to this question then; None from the first on that was not, or not with a whole reply.

        Raises: OutOfTime as then.
        """
        call = self._go.calls.get(request.place.call) if self._holds else None
        if call is not None and call.reply is not None:
            different = first_difference(call.question, question(request))
            if not different:
                return call.reply
            place = f"{request.place.instance_id}, attempt {request.place.attempt}, call {request.place.call}"
            say(f"note: {place} was answered, and is asked again, for the question differs: {different}")
        over = self._go.over if self._holds and call is None else None
        self._holds = False
        if over is not None and over.kind == OutOfTime.__name__:
            raise OutOfTime(over.reason)
        return None

    def noted(self, call: int, key: str) -> bool:
        """Whether the journal has this check after this call, and what came of it."""
        return self._holds and (call, key) in self._noted


def _attempt_key(attempt: Attempt) -> tuple[object, ...]:
    return attempt.number, attempt.round, attempt.model, attempt.seed, attempt.temperature
