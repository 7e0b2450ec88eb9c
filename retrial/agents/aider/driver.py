"""Runs in aider's own Python, inside the agent's cell: drives the real aider, and writes down what it did.

Nothing of Retrial can be imported here. $RETRIAL_SETTINGS names a JSON file (`aider.AiderAgent` writes it),
$RETRIAL_TEST runs the tests, and what was done goes to $RETRIAL_OUT after every call of the model.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import litellm
from aider import models, repomap
from aider.coders import Coder
from aider.exceptions import LiteLLMExceptions
from aider.io import InputOutput

TRIES = 8
"""Failed calls in a row, with aider's own waits between them (a minute in all), before the provider is given up."""
TRIES_TO_REACH = 3
"""Where nobody answers at all."""


class Report:
    """What is known so far; its files are whole at any time, for the cell may end when the attempt's time is over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # summaries are asked for on the side
        self.calls: list[dict[str, Any]] = []
        self.chat: list[dict[str, Any]] = []
        self.retries = 0
        self.waiting = False
        self.failure: dict[str, Any] | None = None
        self.ended = False
        self.counts: Callable[[], dict[str, Any]] = dict

    def write(self) -> None:
        state = {"ended": self.ended, "waiting": self.waiting, "failure": self.failure, "retries": self.retries}
        with self._lock:
            self._put("chat.json", self.chat)
            self._put("report.json", {**state, **self.counts(), "calls": self.calls})

    def _put(self, name: str, value: object) -> None:
        partial = self._folder / f"{name}.partial"
        partial.write_text(json.dumps(value), encoding="utf-8")
        partial.replace(self._folder / name)


class ProviderFailed(BaseException):
    """Passes through aider, which would take it for an empty reply."""


class WatchedModel(models.Model):  # type: ignore[misc]
    """Every call of the model, its summaries included, is written down: aider counts no cut-off replies."""

    report: Report
    failed = 0

    def send_completion(self, messages: list[dict[str, Any]], *rest: Any, **options: Any) -> Any:
        self.report.waiting = True
        self.report.write()
        started = time.monotonic()
        try:
            sent, reply = super().send_completion(messages, *rest, **options)
        except LiteLLMExceptions().exceptions_tuple() as error:
            self._count(error)
            raise
        self.failed, self.report.failure = 0, None
        self.report.calls.append({**_usage(reply), "seconds": time.monotonic() - started})
        self._note(messages, reply)
        return sent, reply

    def _count(self, error: Exception) -> None:
        """Raises: ProviderFailed when it is of no use to ask again."""
        self.report.waiting = False
        if isinstance(error, litellm.ContextWindowExceededError):
            self.failed, self.report.failure = 0, None
            self.report.write()
            return
        self.failed += 1
        self.report.retries += 1
        reached = _reached(error)
        # Those of litellm's errors that have no status are a server's.
        status = getattr(error, "status_code", None) or 500
        self.report.failure = {"status": status, "text": str(error), "reached": reached, "tries": self.failed}
        self.report.write()
        most = TRIES if reached else TRIES_TO_REACH
        if self.failed >= most or not LiteLLMExceptions().get_ex_info(error).retry:
            raise ProviderFailed from error

    def _note(self, messages: list[dict[str, Any]], reply: Any) -> None:
        chat = self.report.chat
        for message in messages:
            role, text = message["role"], _text(message["content"])
            # All is sent every time, older messages without the reminder at their end.
            if not any(said["role"] == role and said["content"].startswith(text.rstrip()) for said in chat):
                chat.append({"role": role, "content": text, "reply": False})
        answer = reply.choices[0].message.content if reply.choices else ""
        chat.append({"role": "assistant", "content": answer or "", "reply": True})
        self.report.waiting = False
        self.report.write()


class Yes(InputOutput):  # type: ignore[misc]
    """Accepts every suggestion."""

    def confirm_ask(self, question: str, *rest: Any, **options: Any) -> Any:
        accepted = super().confirm_ask(question, *rest, **options)
        # Failed tests are the next turn, not a reflection of this one.
        return accepted and question != "Attempt to fix test errors?"

    def offer_url(self, *rest: Any, **options: Any) -> bool:
        """No browser."""
        return False


class NoAnalytics:
    def event(self, *rest: Any, **options: Any) -> None:
        """Not even a file in somebody's home."""


class Session:
    def __init__(self, settings: dict[str, Any], report: Report) -> None:
        self._settings, self._report = settings, report
        self._reflections = 0
        """Of turns before this one."""
        self._edited = False
        self._tested: bool | None = None
        self._output = ""
        self._io = Yes(pretty=False, yes=True, fancy_input=False)
        self._coder = self._open()

    def _open(self) -> Any:
        settings = self._settings
        coder = Coder.create(
            main_model=_model(settings, self._report),
            edit_format=settings["edit_format"] or None,
            io=self._io,
            fnames=settings["editable"],
            read_only_fnames=settings["read_only"],
            map_tokens=settings["map_tokens"],
            auto_commits=False,
            stream=False,
            auto_lint=True,
            auto_test=True,
            test_cmd=os.environ["RETRIAL_TEST"],
            suggest_shell_commands=False,
            analytics=NoAnalytics(),
        )
        coder.temperature = settings["temperature"]
        coder.max_reflections = settings["reflections"]
        if not settings["repository"]:
            coder.ignore_mentions.update(coder.get_addable_relative_files())
        coder.commands.cmd_test = self._test
        self._apply, coder.apply_updates = coder.apply_updates, self._apply_updates
        self._report.counts = self._counts
        return coder

    def run(self) -> None:
        message = self._settings["opening"]
        if self._settings["repository"]:
            self._coder.check_for_file_mentions(message)
        for _ in range(self._settings["turns"]):
            self._turn(message)
            if self._tested is not False:
                break
            output = "\n".join(self._output.splitlines()[: self._settings["feedback_lines"]])
            message = self._settings["failed"].replace("{output}", output)

    def _turn(self, message: str) -> None:
        self._edited, self._tested = False, None
        self._reflections += self._coder.num_reflections
        # Not as a user's input, of which "/" and "!" begin commands and links are followed, be it to the answer.
        self._coder.run(message, preproc=False)
        if self._report.waiting:
            # Something else broke while it asked, which aider shows and passes over.
            raise ProviderFailed
        if self._coder.test_outcome is None:
            # Nothing was edited, or not without lint errors.
            self._test(self._coder.test_cmd)

    def _counts(self) -> dict[str, Any]:
        coder = self._coder
        return {
            "edit_format": coder.edit_format,
            "edit_outcome": self._edited,
            "lint_outcome": coder.lint_outcome,
            "reflections": self._reflections + coder.num_reflections,
            "malformed": coder.num_malformed_responses,
            "exhausted": coder.num_exhausted_context_windows,
            "user_asks": self._io.num_user_asks,
        }

    def _apply_updates(self) -> Any:
        edited = self._apply()
        self._edited = bool(edited) and not self._coder.reflected_message
        return edited

    def _test(self, command: str) -> str:
        """In place of aider's own, for which everything but 0 is a failed test. Empty: there is nothing to mend."""
        done = subprocess.run([command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._tested = {0: True, 1: False}.get(done.returncode)
        self._output = done.stdout.decode("utf-8", "replace").strip() or "The tests failed and said nothing."
        return self._output if self._tested is False else ""


def _model(settings: dict[str, Any], report: Report) -> Any:
    name = settings["model"]
    # aider knows some of OpenAI's models by their plain names only.
    known = {each.name: each for each in models.MODEL_SETTINGS}
    plain = name.removeprefix("openai/")
    if name not in known and plain in known:
        models.MODEL_SETTINGS.append(dataclasses.replace(known[plain], name=name))
    # One model is measured, so it also does what aider would leave to a weaker one.
    model = WatchedModel(name, weak_model=name, editor_model=name)
    model.report = report
    extra = dict(model.extra_params or {})
    body = {**extra.get("extra_body", {}), **settings["extra_body"]}
    model.extra_params = {**extra, **({"extra_body": body} if body else {}), **settings["extra_params"]}
    if settings["reasoning_effort"]:
        model.set_reasoning_effort(settings["reasoning_effort"])
    return model


def _usage(reply: Any) -> dict[str, Any]:
    usage = getattr(reply, "usage", None)
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return {
        "prompt_tokens": getattr(usage, "prompt_tokens", 0) or 0,
        "completion_tokens": getattr(usage, "completion_tokens", 0) or 0,
        "cached_tokens": getattr(prompt, "cached_tokens", 0) or 0,
        "cache_write_tokens": getattr(usage, "cache_creation_input_tokens", 0) or 0,
        "reasoning_tokens": getattr(completion, "reasoning_tokens", 0) or 0,
        # None where nobody told litellm a price.
        "cost": reply._hidden_params.get("response_cost"),
    }


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "[image]")) for part in content)
    return content or ""


def _reached(error: BaseException | None) -> bool:
    """Whether there was somebody to answer."""
    while error is not None:
        if type(error).__name__ == "ConnectError":
            return False
        error = error.__cause__ or error.__context__
    return True


def main() -> None:
    report = Report(Path(os.environ["RETRIAL_OUT"]))
    settings = json.loads(Path(os.environ["RETRIAL_SETTINGS"]).read_text(encoding="utf-8"))
    # What aider and litellm would ask the network for beside the model.
    known = models.model_info_manager
    known.content, known._cache_loaded = litellm.model_cost, True
    litellm.disable_hf_tokenizer_download = True
    # Not in the workspace; and gone with all that is there, however this ends.
    repomap.RepoMap.TAGS_CACHE_DIR = tempfile.mkdtemp(dir=os.environ["RETRIAL_OUT"])
    try:
        Session(settings, report).run()
    except ProviderFailed:
        return
    report.ended = True
    report.write()


if __name__ == "__main__":
    main()
