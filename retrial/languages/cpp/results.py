"""Catch's own JUnit XML; and what the script of C++ makes of it for people, `--- name` before all that is of a test."""

from __future__ import annotations

from retrial.languages.junit import JUnit, drop_parts

HEAD = "--- "


class Catch(JUnit):
    def without(self, text: str, test: str) -> str:
        def begins(line: str) -> bool | None:
            return test in line if line.startswith(HEAD) else None

        return "".join(drop_parts(text.splitlines(keepends=True), test, begins))


parser = Catch
