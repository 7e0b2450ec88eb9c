import unittest

from snail_walk import unwalk, walk


class WalkTest(unittest.TestCase):
    def test_walks_square_grids_clockwise(self):
        self.assertEqual(walk([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), [1, 2, 3, 6, 9, 8, 7, 4, 5])
        self.assertEqual(walk([[1, 2], [3, 4]]), [1, 2, 4, 3])

    def test_walks_wide_and_tall_grids_clockwise(self):
        self.assertEqual(walk([[1, 2, 3], [4, 5, 6]]), [1, 2, 3, 6, 5, 4])
        self.assertEqual(walk([[1, 2], [3, 4], [5, 6]]), [1, 2, 4, 6, 5, 3])
        self.assertEqual(
            walk([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]]),
            [1, 2, 3, 4, 5, 10, 15, 14, 13, 12, 11, 6, 7, 8, 9],
        )

    def test_walks_the_other_way_round(self):
        self.assertEqual(walk([[1, 2, 3], [4, 5, 6]], clockwise=False), [1, 4, 5, 6, 3, 2])
        self.assertEqual(
            walk([["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]], clockwise=False),
            ["a", "d", "g", "h", "i", "f", "c", "b", "e"],
        )

    def test_walks_single_rows_and_columns(self):
        self.assertEqual(walk([[1, 2, 3]]), [1, 2, 3])
        self.assertEqual(walk([[1], [2], [3]]), [1, 2, 3])
        self.assertEqual(walk([[1, 2, 3]], clockwise=False), [1, 2, 3])
        self.assertEqual(walk([[1], [2], [3]], clockwise=False), [1, 2, 3])
        self.assertEqual(walk([[42]]), [42])

    def test_the_empty_grid_has_an_empty_walk(self):
        self.assertEqual(walk([]), [])
        self.assertEqual(walk([], clockwise=False), [])

    def test_the_grid_is_left_as_it_was(self):
        grid = [[1, 2], [3, 4]]
        walk(grid)
        walk(grid, clockwise=False)
        self.assertEqual(grid, [[1, 2], [3, 4]])


class UnwalkTest(unittest.TestCase):
    def test_rebuilds_grids(self):
        self.assertEqual(unwalk([1, 2, 3, 6, 5, 4], 2, 3), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(unwalk([1, 2, 3, 4, 5, 6, 7, 8, 9], 3, 3), [[1, 2, 3], [8, 9, 4], [7, 6, 5]])
        self.assertEqual(unwalk(["x", "y"], 2, 1), [["x"], ["y"]])
        self.assertEqual(unwalk([], 0, 0), [])

    def test_the_values_are_left_as_they_were(self):
        values = [1, 2, 3, 4]
        self.assertEqual(unwalk(values, 2, 2), [[1, 2], [4, 3]])
        self.assertEqual(values, [1, 2, 3, 4])

    def test_a_wrong_number_of_values_is_refused(self):
        with self.assertRaises(ValueError) as short:
            unwalk([1, 2, 3, 4, 5], 2, 3)
        self.assertEqual(str(short.exception), "expected 6 values, got 5")
        with self.assertRaises(ValueError) as long:
            unwalk([1, 2], 1, 1)
        self.assertEqual(str(long.exception), "expected 1 values, got 2")
