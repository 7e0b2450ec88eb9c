import unittest

from page_ranges import pack, unpack


class PackTest(unittest.TestCase):
    def test_single_pages_and_runs(self):
        self.assertEqual(pack([1, 2, 3, 7]), "1-3, 7")
        self.assertEqual(pack([4]), "4")
        self.assertEqual(pack([0, 1, 5, 6, 9]), "0-1, 5-6, 9")
        self.assertEqual(pack([]), "")

    def test_pages_may_come_in_any_order(self):
        self.assertEqual(pack([12, 3, 11, 10]), "3, 10-12")
        self.assertEqual(pack([9, 7, 5]), "5, 7, 9")

    def test_repeated_pages_are_written_once(self):
        self.assertEqual(pack([3, 1, 2, 7, 2]), "1-3, 7")
        self.assertEqual(pack([5, 5, 5]), "5")
        self.assertEqual(pack([1, 1, 2, 2, 4, 4]), "1-2, 4")

    def test_the_list_is_left_as_it_was(self):
        pages = [3, 1, 3]
        self.assertEqual(pack(pages), "1, 3")
        self.assertEqual(pages, [3, 1, 3])


class UnpackTest(unittest.TestCase):
    def check_refused(self, text, message):
        with self.assertRaises(ValueError) as error:
            unpack(text)
        self.assertEqual(str(error.exception), message)

    def test_single_pages_and_ranges(self):
        self.assertEqual(unpack("1-3, 7"), [1, 2, 3, 7])
        self.assertEqual(unpack("15"), [15])
        self.assertEqual(unpack("8-8"), [8])
        self.assertEqual(unpack("0-1,98-101"), [0, 1, 98, 99, 100, 101])

    def test_pieces_are_sorted_and_merged(self):
        self.assertEqual(unpack("7, 1-3,2-4"), [1, 2, 3, 4, 7])
        self.assertEqual(unpack("9,9,2,9"), [2, 9])

    def test_white_space_around_pieces_is_ignored(self):
        self.assertEqual(unpack("  4 ,\t6-7\n"), [4, 6, 7])
        self.assertEqual(unpack(""), [])
        self.assertEqual(unpack("   "), [])

    def test_pieces_which_are_no_pages_are_refused(self):
        self.check_refused("1, two, 3", "not a page: 'two'")
        self.check_refused("1-3, 9 - 12", "not a page: '9 - 12'")
        self.check_refused("-4", "not a page: '-4'")
        self.check_refused("2-", "not a page: '2-'")
        self.check_refused("1-2-3", "not a page: '1-2-3'")

    def test_empty_pieces_are_refused(self):
        self.check_refused("1,,2", "not a page: ''")
        self.check_refused("5, ", "not a page: ''")

    def test_ranges_which_run_down_are_refused(self):
        self.check_refused("4, 9-7", "backwards range: '9-7'")
        self.check_refused(" 10-9 ,x", "backwards range: '10-9'")

    def test_numbers_are_compared_as_numbers(self):
        self.assertEqual(unpack("9-11"), [9, 10, 11])
        self.assertEqual(unpack("100, 20"), [20, 100])
