"""The built-in agent: a chat in which the model rewrites the stub files, sees test output, and tries again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrial import formats, registry
from retrial.agents.edit import file_picker
from retrial.agents.prompts import READ_ONLY, REPOSITORY, TASK
from retrial.attempts import AgentResult
from retrial.chat import Edits, Fault, Message, Reply, Tool, ToolCall
from retrial.errors import AttemptOver, PatchError
from retrial.patches import policy
from retrial.patches.git import decode, encode
from retrial.protocols import AgentContext, Chat, EditFormat, Workspace, WorkspaceCheck
from retrial.system import paths
from retrial.types import Outcome, Task, Verdict

FAILED = """\
{output}

####

See the testing errors above.
The tests are correct.
Fix the code in {files} to resolve the errors."""
LINT = """\
{errors}

Fix these errors in {files}."""
UNCHANGED = "Your reply does not change any file. Write the solution into {files}."

FEEDBACK_LINES = 50
REPEATED = "the model repeated a malformed reply word for word and was not asked again"
PROMPTS = (TASK, REPOSITORY, READ_ONLY, FAILED, LINT, UNCHANGED, *file_picker.PROMPTS, *formats.SHARED)
"""Part of a run's identity."""
# What a model writes instead of code: a comment with an ellipsis.
LAZY = re.compile(r"^[+ ]?[^\S\n]*(?:#|//|/\*|--).*\.\.\.", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditAgent:
    edit_format: EditFormat
    turns: int
    reflections: int
    map_tokens: int
    cache: Path

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        session = EditChat(self, task, workspace, model, check)
        try:
            if session.open():
                session.run()
        except AttemptOver as error:
            session.add(notes=(str(error),))
        return session.effort


class EditChat:
    """One chat about one task."""

    def __init__(self, agent: EditAgent, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> None:
        self._agent, self._task, self._workspace, self._model, self._check = agent, task, workspace, model, check
        self._offered = task.offered
        self._sizes: dict[str, int] = {}
        self.effort = AgentResult(edit_outcome=False)
        self.chat = [Message(role="system", content=agent.edit_format.prompt)]
        self._unanswered: tuple[ToolCall, ...] = ()
        self._malformed: set[tuple[str, ...]] = set()
        self._repeated = False
        """The model wrote the same malformed reply twice: asked again, it would do so once more."""

    def open(self) -> bool:
        """The first message, with the files to edit; in a repository the model is asked for them first.

        False when it names none.
        """
        no_room = self._find() if self._task.whole_repository else ""
        if self._task.whole_repository and not self._offered:
            self.add(notes=("the model named no file to edit",))
            return False
        self._say(self._opening() + no_room)
        return True

    def _find(self) -> str:
        """Which files are offered is the model's choice; returns what it must know of those that are not."""
        files = file_picker.editable(self._task)
        self._sizes = {path: len(content) for path, content in files.items()}
        self._say(file_picker.asked(self._task, files, self._agent.map_tokens, self._agent.cache))
        for left in range(self._agent.reflections, -1, -1):
            reply = self._ask()
            named = file_picker.named(formats.without_reasoning(reply.text), self._sizes)
            self._offered = named.taken
            no_room = file_picker.no_room(named.refused)
            if named.taken or not left:
                break
            self._note_malformed(reply, Fault.NO_NAME)
            if self._repeated:
                break
            self.add(reflections=1)
            self._say(no_room or file_picker.NONE_NAMED)
        return no_room

    @property
    def _names(self) -> str:
        return ", ".join(self._offered)

    def add(self, **counts: Any) -> None:
        """Count further what the effort counts."""
        self.effort = replace(self.effort, **{name: getattr(self.effort, name) + more for name, more in counts.items()})

    def run(self) -> None:
        for left in range(self._agent.turns - 1, -1, -1):
            problem = self._turn()
            if not problem or self._repeated:
                return
            if left:
                self._say(problem)

    def _turn(self) -> str:
        """Ask, with reflections; returns the next turn's message, empty when the tests pass."""
        for left in range(self._agent.reflections, -1, -1):
            reply = self._ask(self._agent.edit_format.tools)
            problem = self._edit(reply)
            self.effort = replace(self.effort, edit_outcome=not problem)
            verdict = None if problem else self._check()
            if verdict is not None and verdict.outcome is Outcome.PATCH_EMPTY:
                problem = UNCHANGED.format(files=self._names)
            elif verdict is not None and verdict.lint:
                problem = LINT.format(errors="\n".join(verdict.lint), files=self._names)
            # A model that did not come to its end will not do so when it is told that it did not.
            if not problem or not left or reply.finish == "length" or self._repeated:
                break
            self.add(reflections=1)
            self._say(problem)
        return self._end_of_turn(verdict, problem)

    def _end_of_turn(self, verdict: Verdict | None, problem: str) -> str:
        if verdict is not None and verdict.outcome is Outcome.UNVERIFIED:
            # Tests that say nothing give a model nothing to go on, and us nothing to count.
            return problem
        passed = verdict is not None and verdict.resolved
        self.add(tests_outcomes=(passed,))
        if verdict is None or passed or verdict.outcome is Outcome.PATCH_EMPTY:
            return "" if passed else problem
        self.effort = count_errors(self.effort, verdict)
        output = "\n".join(_feedback(verdict).splitlines()[:FEEDBACK_LINES])
        return FAILED.format(output=output, files=self._names)

    def _ask(self, tools: tuple[Tool, ...] = ()) -> Reply:
        reply = self._model.ask(tuple(self.chat), tools)
        said = formats.without_reasoning(reply.text)
        self.chat.append(Message(role="assistant", content=said, calls=reply.calls))
        self._unanswered = reply.calls
        written = "\n".join([said, *(_unescaped(call.arguments) for call in reply.calls)])
        self.add(exhausted=int(reply.finish == "length"), lazy_comments=len(LAZY.findall(written)))
        return reply

    def _edit(self, reply: Reply) -> str:
        """Apply a reply's edits; returns what is wrong with it, for the model."""
        found = self._read(reply)
        unseen = self._unseen(reply, found)
        if unseen.taken:
            self._offered += unseen.taken
            return (found.problem + file_picker.NOT_SEEN).lstrip() + self._listed(unseen.taken)
        if unseen.refused:
            found = Edits(problem=file_picker.no_room(unseen.refused), fault=Fault.NOT_ALLOWED)
        if not found.problem:
            found = self._apply(found)
        if found.problem:
            self._note_malformed(reply, found.fault or Fault.MALFORMED)
        else:
            # What a model wrote anew it may have to mend.
            self._offered = tuple(dict.fromkeys((*self._offered, *(edit.path for edit in found.edits))))
        return found.problem

    def _note_malformed(self, reply: Reply, fault: Fault) -> None:
        self.add(malformed=1, faults=(str(fault),))
        words = (reply.text, *(text for call in reply.calls for text in (call.name, call.arguments)))
        if words in self._malformed:
            self._repeated = True
            self.add(notes=(REPEATED,))
        self._malformed.add(words)

    def _unseen(self, reply: Reply, found: Edits) -> file_picker.Named:
        """Files of the repository that a reply edits, or seems to, though they were not shown."""
        paths = [edit.path for edit in found.edits]
        if found.fault in (Fault.NO_NAME, Fault.NO_MATCH, Fault.NOT_ALLOWED):
            paths = file_picker.paths(formats.without_reasoning(reply.text), *(call.arguments for call in reply.calls))
        wanted = [path for path in paths if path in self._sizes and path not in self._offered]
        return file_picker.fitting(wanted, self._sizes, self._offered) if wanted else file_picker.Named()

    def _read(self, reply: Reply) -> Edits:
        # Bytes that are no text stay what they are.
        files = {path: decode(self._workspace.read(path) or b"") for path in self._offered}
        found = formats.read(self._agent.edit_format, reply, files)
        refused = [edit.path for edit in found.edits if not self._allowed(edit.path)]
        return formats.not_allowed(refused, files) if refused else found

    def _allowed(self, path: str) -> bool:
        """What was offered, and new files. A file that is there is never written over unseen; one of a repository's
        that can be shown is told apart later."""
        if path in self._offered or path in self._sizes:
            return policy.writable(self._task, path, ())
        there = self._task.tree.some([path])
        return path not in there and policy.writable(self._task, path, there)

    def _apply(self, found: Edits) -> Edits:
        """All of them; or none, with the problem."""
        before = {edit.path: self._workspace.read(edit.path) for edit in found.edits}
        try:
            for edit in found.edits:
                self._put(edit.path, None if edit.content is None else encode(edit.content))
        except PatchError as error:
            for path, content in before.items():
                with suppress(PatchError):
                    self._put(path, content)
            return Edits(problem=str(error), fault=Fault.NOT_ALLOWED)
        return found

    def _put(self, path: str, content: bytes | None) -> None:
        if content is None:
            self._workspace.remove(path)
        else:
            self._workspace.write(path, content)

    def _say(self, content: str) -> None:
        """To the model: as the answer to its calls, if it made any."""
        if not self._unanswered:
            self.chat.append(Message(role="user", content=content))
        for call in self._unanswered:
            self.chat.append(Message(role="tool", content=content, call_id=call.id))
        self._unanswered = ()

    def _opening(self) -> str:
        form = REPOSITORY if self._task.whole_repository else TASK
        text = form.format(instructions=self._task.problem_statement, files=self._names)
        text += self._listed(self._offered)
        if self._task.read_only:
            text += READ_ONLY + self._listed(self._task.read_only)
        return text

    def _listed(self, paths: Sequence[str]) -> str:
        """Files as a model can be shown them: no byte order mark, and nothing that is no text."""
        contents = ((self._workspace.read(path) or b"").decode("utf-8-sig", "replace") for path in paths)
        return "".join(map(_listing, paths, contents))


def make(context: AgentContext) -> EditAgent:
    options = context.options
    return EditAgent(
        edit_format=registry.module("formats", context.edit_format).make(),
        turns=options.turns,
        reflections=options.reflections,
        map_tokens=options.map_tokens,
        cache=paths.cache(),
    )


def count_errors(effort: AgentResult, verdict: Verdict) -> AgentResult:
    """Count further what a check says of the code that it ran."""
    lines = [line.removeprefix("E").strip() for line in verdict.output.splitlines()]
    return replace(
        effort,
        syntax_errors=effort.syntax_errors + sum(line.startswith("SyntaxError") for line in lines),
        indentation_errors=effort.indentation_errors + sum(line.startswith("IndentationError") for line in lines),
        test_timeouts=effort.test_timeouts + (verdict.outcome is Outcome.TIMED_OUT),
    )


def _unescaped(arguments: str) -> str:
    """The texts in a call's arguments, broken JSON or not, on lines of their own."""
    return re.sub(r'\\n|"', "\n", arguments)


def _listing(path: str, content: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"^`+", content, re.MULTILINE)), default=0))
    return f"\n{path}\n{fence}\n{content.rstrip()}\n{fence}\n"


def _feedback(verdict: Verdict) -> str:
    """What the model is told of a failed check: the runner's output, and the reason where that says nothing."""
    if verdict.telling:
        return verdict.telling
    if verdict.outcome is Outcome.TIMED_OUT:
        return f"{verdict.output}\n\nTests timed out!"
    return verdict.output or verdict.reason
