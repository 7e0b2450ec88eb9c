import unittest

from document_edits import EditError, edit, look


def set_(path, value):
    return {"op": "set", "path": path, "value": value}


def insert(path, value):
    return {"op": "insert", "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


def move(source, path):
    return {"op": "move", "from": source, "path": path}


def expect(path, value):
    return {"op": "expect", "path": path, "value": value}


class LookTest(unittest.TestCase):
    def check_refused(self, document, path, message):
        with self.assertRaises(EditError) as error:
            look(document, path)
        self.assertEqual(str(error.exception), message)
        self.assertIsNone(error.exception.index)

    def test_follows_keys_and_indexes(self):
        document = {"a": [10, {"b": 20}], "": {"": 30}, "0": 40}
        self.assertEqual(look(document, "/a/0"), 10)
        self.assertEqual(look(document, "/a/1/b"), 20)
        self.assertEqual(look(document, "//"), 30)
        self.assertEqual(look(document, "/0"), 40)

    def test_the_empty_path_is_the_whole_document(self):
        self.assertEqual(look([1, 2], ""), [1, 2])
        self.assertEqual(look("text", ""), "text")

    def test_undoes_tildes_in_steps(self):
        document = {"b/c": 1, "~": 2, "~1": 3, "-": 4}
        self.assertEqual(look(document, "/b~1c"), 1)
        self.assertEqual(look(document, "/~0"), 2)
        self.assertEqual(look(document, "/~01"), 3)
        self.assertEqual(look(document, "/-"), 4)

    def test_finds_values_which_are_false(self):
        self.assertIsNone(look({"a": None}, "/a"))
        self.assertEqual(look({"a": {"b": 0}}, "/a/b"), 0)

    def test_refuses_paths_which_lead_nowhere(self):
        self.check_refused({"a": 1}, "/b", "no such path '/b'")
        self.check_refused({"a": 1}, "/a/b/c", "no such path '/a/b/c'")
        self.check_refused({"a": "word"}, "/a/0", "no such path '/a/0'")
        self.check_refused({"x/y": 1}, "/x~1z", "no such path '/x~1z'")

    def test_refuses_improper_indexes(self):
        self.check_refused([1, 2], "/2", "no such path '/2'")
        self.check_refused([1, 2], "/01", "no such path '/01'")
        self.check_refused([1, 2], "/-1", "no such path '/-1'")
        self.check_refused([1, 2], "/-", "no such path '/-'")
        self.check_refused([1, 2], "/", "no such path '/'")
        self.check_refused([1, 2], "/\u0661", "no such path '/\u0661'")

    def test_refuses_paths_without_a_first_slash(self):
        self.check_refused({"a": {"b": 1}}, "a/b", "bad path 'a/b'")


class EditTest(unittest.TestCase):
    def check_refused(self, document, edits, message, index=0):
        with self.assertRaises(EditError) as error:
            edit(document, edits)
        self.assertEqual(str(error.exception), message)
        self.assertEqual(error.exception.index, index)

    def test_no_edits_give_an_equal_document(self):
        self.assertEqual(edit({"a": [1]}, []), {"a": [1]})

    def test_sets_values(self):
        self.assertEqual(edit({"a": 1}, [set_("/a", 2)]), {"a": 2})
        self.assertEqual(edit({"a": 1}, [set_("/b", 2)]), {"a": 1, "b": 2})
        self.assertEqual(edit({"a": [1, 2]}, [set_("/a/1", 3)]), {"a": [1, 3]})
        self.assertEqual(edit({"a": 1}, [set_("", [4])]), [4])

    def test_refuses_to_set_where_there_is_no_place(self):
        self.check_refused({"a": [1]}, [set_("/a/1", 2)], "edit 0: no such path '/a/1'")
        self.check_refused({"a": [1]}, [set_("/a/-", 2)], "edit 0: no such path '/a/-'")
        self.check_refused({"a": 1}, [set_("/b/c", 2)], "edit 0: no such path '/b/c'")
        self.check_refused({"a": 1}, [set_("/a/c", 2)], "edit 0: no such path '/a/c'")

    def test_inserts_into_lists(self):
        self.assertEqual(edit({"a": [1, 3]}, [insert("/a/1", 2)]), {"a": [1, 2, 3]})
        self.assertEqual(edit([1], [insert("/0", 0)]), [0, 1])
        self.assertEqual(edit([1], [insert("/1", 2)]), [1, 2])
        self.assertEqual(edit([1], [insert("/-", 2), insert("/-", 3)]), [1, 2, 3])

    def test_refuses_to_insert_elsewhere(self):
        self.check_refused([1], [insert("/2", 5)], "edit 0: no such path '/2'")
        self.check_refused({"a": {}}, [insert("/a/0", 5)], "edit 0: not a list: '/a/0'")
        self.check_refused({"a": 1}, [insert("/a/-", 5)], "edit 0: not a list: '/a/-'")
        self.check_refused([1], [insert("", 5)], "edit 0: not a list: ''")
        self.check_refused({"a": 1}, [insert("/b/0", 5)], "edit 0: no such path '/b/0'")

    def test_removes_values(self):
        self.assertEqual(edit({"a": 1, "b": 2}, [remove("/a")]), {"b": 2})
        self.assertEqual(edit({"a": [1, 2, 3]}, [remove("/a/0"), remove("/a/0")]), {"a": [3]})
        self.check_refused({"a": 1}, [remove("/b")], "edit 0: no such path '/b'")
        self.check_refused([1], [remove("/-")], "edit 0: no such path '/-'")
        self.check_refused([1], [remove("")], "edit 0: cannot remove the document")

    def test_moves_values(self):
        self.assertEqual(edit({"a": 1}, [move("/a", "/b")]), {"b": 1})
        self.assertEqual(edit({"a": 1, "b": [2]}, [move("/a", "/b/0")]), {"b": [1, 2]})
        self.assertEqual(edit([1, 2, 3], [move("/0", "/2")]), [2, 3, 1])
        self.assertEqual(edit([1, 2, 3], [move("/2", "/0")]), [3, 1, 2])
        self.assertEqual(edit([1, 2, 3], [move("/0", "/-")]), [2, 3, 1])
        self.assertEqual(edit({"a": {"b": 1}}, [move("/a/b", "/a")]), {"a": 1})

    def test_looks_the_target_up_after_taking_the_value_out(self):
        self.assertEqual(edit([5, [6], [7]], [move("/0", "/1/0")]), [[6], [5, 7]])
        self.check_refused([1, 2, 3], [move("/0", "/3")], "edit 0: no such path '/3'")
        self.assertEqual(edit([[1], 2], [move("/1", "/0/0")]), [[2, 1]])

    def test_refuses_moves_which_cannot_be(self):
        self.check_refused({"a": 1}, [move("/b", "/c")], "edit 0: no such path '/b'")
        self.check_refused({"a": 1}, [move("/b", "/b")], "edit 0: no such path '/b'")
        self.check_refused({"a": 1}, [move("/a", "/b/c")], "edit 0: no such path '/b/c'")
        self.check_refused({"a": {"b": 1}}, [move("/a", "/a/b")], "edit 0: cannot move '/a' into itself")
        self.check_refused({}, [move("/x", "/x/y/z")], "edit 0: cannot move '/x' into itself")
        self.check_refused({}, [move("x", "y")], "edit 0: bad path 'x'")

    def test_a_similar_name_is_not_inside(self):
        self.assertEqual(edit({"a": 1, "ab": {}}, [move("/a", "/ab/c")]), {"ab": {"c": 1}})

    def test_expects_values(self):
        document = {"a": [1, {"b": None}], "c": True}
        edits = [expect("/a", [1.0, {"b": None}]), expect("/c", True), expect("/a/1/b", None)]
        self.assertEqual(edit(document, edits), {"a": [1, {"b": None}], "c": True})
        self.check_refused({"a": 1}, [expect("/a", 2)], "edit 0: expectation failed at '/a'")
        self.check_refused({"a": 1}, [expect("/b", None)], "edit 0: no such path '/b'")

    def test_booleans_are_not_numbers(self):
        self.check_refused({"a": 1}, [expect("/a", True)], "edit 0: expectation failed at '/a'")
        self.check_refused([False], [expect("", [0])], "edit 0: expectation failed at ''")
        self.check_refused(
            {"a": [{"b": 0}]}, [expect("/a", [{"b": False}])], "edit 0: expectation failed at '/a'"
        )

    def test_later_edits_see_the_outcome_of_earlier_ones(self):
        edits = [set_("/list", []), insert("/list/-", 1), insert("/list/0", 2), move("/list/1", "/one")]
        self.assertEqual(edit({}, edits), {"list": [2], "one": 1})

    def test_a_mistake_names_its_edit(self):
        edits = [set_("/a", 1), expect("/a", 1), {"op": "swap", "path": "/a"}]
        self.check_refused({}, edits, "edit 2: unknown op 'swap'", 2)
        self.check_refused({}, [set_("/a", 1), remove("a")], "edit 1: bad path 'a'", 1)
        self.assertTrue(issubclass(EditError, ValueError))

    def test_nothing_given_is_changed(self):
        document, edits = {"a": [1]}, [set_("/b", [2]), insert("/b/-", 3), remove("/a/0")]
        self.assertEqual(edit(document, edits), {"a": [], "b": [2, 3]})
        self.assertEqual(document, {"a": [1]})
        self.assertEqual(edits[0], {"op": "set", "path": "/b", "value": [2]})
        self.check_refused(document, [remove("/a/0"), remove("/a/0")], "edit 1: no such path '/a/0'", 1)
        self.assertEqual(document, {"a": [1]})

    def test_nothing_is_shared_with_what_was_given(self):
        document, edits = {"a": [1]}, [set_("/b", [2])]
        result = edit(document, edits)
        result["a"].append(7)
        result["b"].append(8)
        self.assertEqual(document, {"a": [1]})
        self.assertEqual(edits[0]["value"], [2])
        self.assertEqual(result, {"a": [1, 7], "b": [2, 8]})
