"""Moves bytes between the host and a supervisor, without threads: neither side can block the other."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from retrial.sandboxes.supervisor import CHUNK, Phase, SupervisorSession
from retrial.sandboxes.time_allowance import Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where the streams of a supervisor are on the host: non-blocking descriptors."""

    stdin: int
    close_stdin: Callable[[], None]
    outputs: Mapping[int, Callable[[bytes], None]]


def converse(session: SupervisorSession, channel: Channel, meter: Meter) -> bool:
    """Send the request and listen until all streams end or the deadline passes; True when the job ran out of time."""
    unsent = memoryview(session.request)
    with selectors.DefaultSelector() as selector:
        for descriptor, take in channel.outputs.items():
            selector.register(descriptor, selectors.EVENT_READ, take)
        listening = len(channel.outputs)
        writing = _Writer(selector, channel)
        while listening and not session.overflow:
            left = session.deadline - time.monotonic()
            if left <= 0:
                if session.extend(meter):
                    continue
                return session.phase is Phase.RUNNING
            for key, events in selector.select(left):
                if events & selectors.EVENT_WRITE:
                    unsent = writing.send(unsent)
                if events & selectors.EVENT_READ and not receive(key.fd, key.data):
                    writing.forget(key.fd)
                    listening -= 1
    session.broken_off = not listening and session.phase is not Phase.DONE
    return False


class _Writer:
    """Sends the request; its descriptor may be one of the outputs too (a socket)."""

    def __init__(self, selector: selectors.BaseSelector, channel: Channel) -> None:
        self._selector = selector
        self._channel = channel
        self._shared = channel.outputs.get(channel.stdin)
        if self._shared:
            selector.modify(channel.stdin, selectors.EVENT_READ | selectors.EVENT_WRITE, self._shared)
        else:
            selector.register(channel.stdin, selectors.EVENT_WRITE)

    def send(self, data: memoryview) -> memoryview:
        try:
            data = data[os.write(self._channel.stdin, data[:CHUNK]) :]
        except BlockingIOError:
            return data
        except (BrokenPipeError, ConnectionResetError):
            # The other side is gone; what it said last is still to be read.
            data = data[:0]
        if not data:
            self._finish()
        return data

    def _finish(self) -> None:
        if self._shared:
            self._selector.modify(self._channel.stdin, selectors.EVENT_READ, self._shared)
        else:
            self._selector.unregister(self._channel.stdin)
        self._channel.close_stdin()

    def forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)


def receive(descriptor: int, take: Callable[[bytes], None]) -> bool:
    """False at the stream's end."""
    try:
        data = os.read(descriptor, CHUNK)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    take(data)
    return bool(data)
