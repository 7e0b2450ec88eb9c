import unittest

from mirror_word import mirror


class MirrorWordTest(unittest.TestCase):
    def test_turns_a_word_around(self):
        self.assertEqual(mirror("stone"), "enots")
        self.assertEqual(mirror("lamp"), "pmal")

    def test_keeps_capital_letters_and_digits(self):
        self.assertEqual(mirror("Abc"), "cbA")
        self.assertEqual(mirror("Room 12"), "21 mooR")

    def test_short_words_read_the_same(self):
        self.assertEqual(mirror(""), "")
        self.assertEqual(mirror("x"), "x")

    def test_turns_accented_letters_around(self):
        self.assertEqual(mirror("über"), "rebü")
        self.assertEqual(mirror("жук"), "куж")
