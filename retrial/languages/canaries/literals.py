"""A literal that is not what it was: of the same kind and about the same size, whatever the language."""

from __future__ import annotations

import re

WORDS = {"true": "false", "false": "true", "True": "False", "False": "True"}
NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<digits>\d[\d_']*)(?P<rest>.*)", re.DOTALL)
QUOTED = re.compile(
    r"""(?P<open>[A-Za-z]{0,2}\#*(?P<quote>\"{3}|'{3}|["'`]))(?P<inner>.*)(?P<close>(?P=quote)\#*)""", re.DOTALL
)
BASED = re.compile(r"(?P<base>[+-]?0[xXbBoO])(?P<digits>[\da-fA-F_']*[\da-fA-F])(?P<rest>.*)", re.DOTALL)


def changed(text: str) -> str | None:
    """None where it is no literal that we know how to change."""
    if text in WORDS:
        return WORDS[text]
    if quoted := QUOTED.fullmatch(text):
        return quoted["open"] + _other_text(quoted["inner"]) + quoted["close"]
    if based := BASED.fullmatch(text):
        return based["base"] + _other_based(based["digits"]) + based["rest"]
    if number := NUMBER.fullmatch(text):
        return number["sign"] + _other_number(number["digits"]) + number["rest"]
    return None


def _other_number(digits: str) -> str:
    """The last digit is another: never one more digit, which might not fit, and no leading zero."""
    last = int(digits[-1])
    return digits[:-1] + str(last - 1 if last > 1 else last + 1)


def _other_based(digits: str) -> str:
    """The last digit is its neighbour: of 0 and 1, of 6 and 7, of e and f, so that it is one in every base."""
    return digits[:-1] + "1032547698badcfeBADCFE"["0123456789abcdefABCDEF".index(digits[-1])]


def _other_text(inner: str) -> str:
    """Its last plain letter or digit is another one of its kind; a text without any gets one."""
    for place in reversed(range(len(inner))):
        # What may be part of an escape, or of something that is put in when it runs, is left alone.
        if inner[place].isascii() and inner[place].isalnum() and not re.search(r"[\\$%{&#][^\s]*$", inner[:place]):
            return inner[:place] + _other_letter(inner[place]) + inner[place + 1 :]
    return inner + "x" if len(inner) != 1 else "x"


def _other_letter(letter: str) -> str:
    if letter.isdigit():
        return _other_number(letter)
    last = letter in "zZ"
    return chr(ord(letter) + (-1 if last else 1))
