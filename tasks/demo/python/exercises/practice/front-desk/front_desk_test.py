import unittest

from front_desk import greet


class FrontDeskTest(unittest.TestCase):
    def test_greets_a_guest_by_first_name(self):
        self.assertEqual(greet("Ada"), "Welcome, Ada!")
        self.assertEqual(greet("Grace"), "Welcome, Grace!")

    def test_greets_a_guest_with_a_title(self):
        self.assertEqual(greet("Mr Fox"), "Welcome, Mr Fox!")
        self.assertEqual(greet("Dr Jane Roe"), "Welcome, Dr Jane Roe!")

    def test_leaves_the_case_of_the_name_alone(self):
        self.assertEqual(greet("bell"), "Welcome, bell!")
        self.assertEqual(greet("BOB"), "Welcome, BOB!")
