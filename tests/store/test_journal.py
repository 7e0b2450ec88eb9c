"""The journal: what was written is read, what is torn or damaged is told from it, and nothing of it ever raises."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given

from retrial.attempts import Attempt
from retrial.chat import Message, Reply, Request, Sampling, ToolCall, Usage
from retrial.errors import UsageError
from retrial.predict.metering.resume import Earlier
from retrial.store import attempt_log, journal, transcript
from retrial.store.events import AttemptOver, Event, ReplyLost, TaskNotMeasured, VisibleChecked
from retrial.store.journal import Journal
from retrial.store.records import attempt_record
from retrial.store.runs import Run
from retrial.store.spending import committed
from retrial.types import Outcome, Status, Verdict
from tests.fuzz.mutation import changed_bytes, fuzz
from tests.support.journals import append, line

BLANK = Attempt(number=1, round=1, model="m", edit_format="whole", seed=0, temperature=0.0)
SAMPLING = Sampling(temperature=0.0, seed=0, max_tokens=9, seconds=60)
VERDICT = Verdict(outcome=Outcome.RESOLVED, tests={"t": Status.PASSED})
ASKED = Request(messages=(Message(role="user", content="é\n"),))
SAID = Reply(text="ü", calls=(ToolCall(name="f", arguments="{}"),), usage=Usage(cost=0.1))
EVERYTHING = b"".join(
    line(event, go="g", attempt=1, **fields)
    for event, fields in (
        ("attempt_started", {"model": "m", "sampling": SAMPLING}),
        ("request", {"model": "m", "call": 1, "reserved": 0.5, "request": ASKED}),
        ("lost", {"call": 1, "cost": 0.5}),
        ("reply", {"call": 1, "reply": SAID}),
        ("check", {"call": 1, "key": "k", "verdict": VERDICT}),
        ("spent", {"call": 1, "usage": Usage(cost=0.2)}),
        ("agent_chat", {"call": 1, "messages": (Message(role="user", content="x"),)}),
        ("request", {"model": "m", "call": 2, "reserved": 0.5, "request": ASKED}),
        ("failed", {"call": 2, "reason": "it is down"}),
        ("over", {"call": 3, "kind": "OutOfTime", "reason": "the time is over"}),
        ("attempt_ended", {"result": attempt_record(BLANK)}),
        ("not_measured", {"reason": "it is down"}),
        ("attempt_resumed", {"model": "m", "sampling": SAMPLING}),
        ("request", {"model": "m", "call": 1, "reserved": 0.5, "request": ASKED}),
    )
)
OLDER = re.sub(rb', "crc": "\w+"|, "go": "g"|, "call": \d', b"", EVERYTHING)
"""As it was written before lines had a checksum."""
SHORT = b"".join(line("not_measured", reason=reason) for reason in ("one", "two", "three"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "one.jsonl"


def held(file: Path, content: bytes) -> Journal:
    """A journal that holds this."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return Journal(file)


def events(content: bytes) -> list[str]:
    """Why a task was not measured, or else the kinds of events."""
    found = journal.read(content)
    return [event.reason if isinstance(event, TaskNotMeasured) else event.tag for event in found]


def test_what_was_written_is_read_by_us_and_by_anybody(file: Path) -> None:
    kept = Journal(file)
    written = (TaskNotMeasured(reason='é "\n'), ReplyLost(attempt=1, cost=None), AttemptOver(kind="k", reason="r"))
    kept.append(written[0])
    kept.write(journal.line(written[1]) + journal.line(written[2]))
    assert tuple(kept.events()) == written
    plain = [json.loads(line) for line in file.read_text().splitlines()]
    assert plain[0]["reason"] == 'é "\n'
    assert list(plain[1]) == ["event", "attempt", "cost", "crc"]
    assert [list(line)[-1] for line in plain] == ["crc"] * 3


def test_events_of_other_versions_and_their_fields_are_passed_over() -> None:
    found = tuple(journal.read(line("hovered", attempt=1, height=3) + line("lost", cost=0.5, weight=2)))
    assert found == (Event(attempt=1), ReplyLost(cost=0.5))


def test_a_verdict_of_another_version_is_as_good_as_none() -> None:
    (found,) = journal.read(line("check", key="k", verdict={"outcome": "glorious"}))
    assert found == VisibleChecked(key="k")


def test_a_line_that_another_version_wrote_in_another_form_is_refused_by_its_place(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(journal.sealed(b'{"event": "reply", "attempt": "first"}\n'))
    with pytest.raises(UsageError, match=rf"{re.escape(str(file))}, line 1, .*\$\.attempt.*--run"):
        list(Journal(file).events())


def test_without_a_checksum_a_reply_must_say_its_cost() -> None:
    whole = b'{"event": "reply", "reply": {"text": "", "usage": {"cost": 0.5}}}\n'
    assert events(whole) == ["reply"]
    assert events(whole.replace(b'"cost"', b'"coat"')) == []


def test_of_a_journal_that_is_cut_anywhere_the_whole_lines_are_read() -> None:
    ends = [place for place, byte in enumerate(SHORT) if byte == ord("\n")]
    for cut in range(len(SHORT) + 1):
        # All but a line's end is a whole line.
        assert events(SHORT[:cut]) == ["one", "two", "three"][: sum(cut >= end for end in ends)]


def test_after_any_cut_the_next_line_is_whole(file: Path) -> None:
    for cut in range(len(SHORT) + 1):
        before = events(SHORT[:cut])
        kept = held(file, SHORT[:cut])
        append(kept, "not_measured", reason="next")
        assert events(kept.content()) == [*before, "next"]
        assert kept.content().count(b"\n") == len(before) + 1


def test_a_torn_last_line_is_dropped_and_said_once_by_name(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = held(file, SHORT[:-5])
    assert events(kept.mended()) == ["one", "two"]
    assert SHORT.startswith(kept.content())
    assert kept.mended() == kept.content()
    said = capsys.readouterr().err
    assert said.count(f"the last line of {file} was torn") == 1
    assert [path.name for path in file.parent.iterdir()] == ["one.jsonl"]


def test_a_whole_journal_is_left_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"", SHORT, SHORT[:-1], EVERYTHING, OLDER):
        assert held(file, content).mended() == content
    assert capsys.readouterr().err == ""
    assert Journal(file.with_name("none.jsonl")).mended() == b""


@pytest.mark.parametrize("place", [3, 20, 80, len(SHORT) - 4])
def test_any_bit_that_flips_is_noticed_and_the_other_lines_are_kept(
    place: int, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(SHORT)
    damaged[place] ^= 1
    kept = held(file, bytes(damaged))
    lost = SHORT[:place].count(b"\n")
    left = [name for number, name in enumerate(("one", "two", "three")) if number != lost]
    # If nobody can tell what a line was about, it may have been money.
    assert events(kept.mended()) == [*left, *(["lost"] if place == 3 else [])]
    assert file.with_name("one.jsonl.damaged").read_bytes() == damaged
    assert f"{file} is damaged" in capsys.readouterr().err
    file.write_bytes(b"{}\n" + SHORT)
    assert kept.mended() == SHORT + line("lost", cost=None)
    assert file.with_name("one.jsonl.damaged-2").read_bytes() == b"{}\n" + SHORT
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "one.jsonl", "one.jsonl.damaged", "one.jsonl.damaged-2",
    ]  # fmt: skip


def test_every_single_bit_of_a_sealed_line_counts() -> None:
    content = SHORT + line("not_measured", reason="last")
    for place in range(len(SHORT), len(content) - 1):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            assert events(bytes(damaged))[:3] == ["one", "two", "three"]
            assert "last" not in events(bytes(damaged))


def test_lines_of_before_there_were_checksums_count_until_one_has_it(file: Path) -> None:
    kept = held(file, OLDER)
    assert events(OLDER) == events(EVERYTHING)
    append(kept, "not_measured", reason="new")
    assert events(kept.mended()) == [*events(EVERYTHING), "new"]
    with file.open("ab") as end:
        end.write(b'{"event": "forged"}\n')
    assert events(kept.mended()) == [*events(EVERYTHING), "new"]


def test_who_mends_it_does_not_take_away_what_others_are_writing(file: Path) -> None:
    def write(writer: int) -> None:
        for _ in range(3):
            append(Journal(file), "not_measured", reason="x" * 4_000_000)
            Journal(file).mended()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert len(list(Journal(file).events())) == 2 * 3
    assert [path.name for path in file.parent.iterdir()] == ["one.jsonl"]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may grow to this size, as on a disk that fills up."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_for_which_there_is_no_room_are_not_there_at_all(file: Path) -> None:
    kept = held(file, SHORT)
    lines = line("not_measured", reason="four") + line("not_measured", reason="five")
    with room_for(len(SHORT) + len(lines) - 10), pytest.raises(OSError, match="too large"):
        kept.write(lines)
    assert kept.content() == SHORT
    kept.write(lines)
    assert kept.content() == SHORT + lines


def asked(go: str, call: int, text: str) -> bytes:
    request = Request(messages=(Message(role="user", content=text),))
    return line("request", go=go, attempt=1, call=call, reserved=0.5, request=request)


def replied(go: str, call: int, text: str) -> bytes:
    return line("reply", go=go, attempt=1, call=call, reply=Reply(text=text, usage=Usage(cost=0.1)))


def begun(go: str, event: str = "attempt_started") -> bytes:
    return line(event, go=go, attempt=1, model="m", sampling=SAMPLING)


def calls(content: bytes) -> list[list[tuple[str, str]]]:
    """(question, reply) of each go."""
    return [
        [(call.question.messages[0].content, call.reply.text if call.reply else "") for call in go.calls.values()]
        for go in attempt_log.read(journal.read(content))
    ]


def test_a_reply_belongs_to_the_question_of_its_own_go() -> None:
    """Two workers at one task: one was taken for lost, and was not."""
    content = begun("a") + asked("a", 1, "a?") + begun("b") + asked("b", 1, "b?") + replied("a", 1, "a!")
    content += asked("a", 2, "more?") + replied("b", 1, "b!")
    assert calls(content) == [[("a?", "a!"), ("more?", "")], [("b?", "b!")]]
    assert committed(journal.read(content)) == pytest.approx(0.1 + 0.1 + 0.5), "and all of it is paid for"


def test_what_is_asked_anew_takes_the_place_of_all_that_followed() -> None:
    content = begun("a") + asked("a", 1, "1") + replied("a", 1, "one") + asked("a", 2, "2") + replied("a", 2, "two")
    content += begun("b", "attempt_resumed") + asked("b", 2, "other 2")
    assert calls(content)[-1] == [("1", "one"), ("other 2", "")]
    content += replied("b", 2, "other two") + begun("c", "attempt_resumed")
    assert calls(content)[-1] == [("1", "one"), ("other 2", "other two")]
    assert committed(journal.read(content)) == pytest.approx(0.3)


def uses(run: Run) -> None:
    """All that is ever done with a journal."""
    content = run.journal("one").mended()
    lines = list(journal.read(content))
    assert run.journal("one").mended() == content, "what was mended is whole"
    committed(lines)
    run.spent()
    attempt_log.read(lines)
    transcript.markdown("one", "plausible", lines)
    earlier = Earlier(lines).attempt(BLANK)
    earlier.ended()
    earlier.noted(1, "k")


WORDS = (
    b"\n",
    b"\x00" * 20,
    b"\xff",
    b"}",
    b'{"event": "reply"}\n',
    b"null",
    b"[]",
    b'"',
    b"-1",
    b"1e999",
    b"[" * 5000,
)


@fuzz(150)
@given(change=changed_bytes(WORDS))
@example(change=lambda content: b"[" * 100_000)
@example(change=lambda content: b'{"event": ["request"]}\n' + content)
@pytest.mark.parametrize("content", [EVERYTHING, OLDER], ids=["sealed", "older"])
def test_nothing_in_a_journal_is_ever_too_odd(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, change: Callable[[bytes], bytes]
) -> None:
    run = Run(tmp_path_factory.mktemp("odd"), "r")
    held(run.folder / "journal" / "one.jsonl", change(content))
    uses(run)
