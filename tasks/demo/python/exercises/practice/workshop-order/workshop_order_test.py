from workshop_order import CycleError, order, waves


def circle(function, *arguments):
    try:
        return "no circle", function(*arguments)
    except CycleError as error:
        return error.cycle, str(error)


def refusal(needs, wanted):
    try:
        return f"not refused: {order(needs, wanted)}"
    except ValueError as error:
        return str(error)


def test_nothing_to_make():
    assert order({}) == []
    assert waves({}) == []
    assert order({"a": ["b"]}, []) == []


def test_parts_come_after_what_they_need():
    assert order({"a": ["b"], "b": ["c"]}) == ["c", "b", "a"]
    assert order({"a": [], "b": ["a"], "c": ["b", "a"]}) == ["a", "b", "c"]


def test_the_alphabetically_first_part_which_is_ready_comes_next():
    assert order({"z": [], "m": [], "b": []}) == ["b", "m", "z"]
    assert order({"a": ["z"], "b": [], "y": []}) == ["b", "y", "z", "a"]
    assert order({"b": ["c"], "d": ["a"], "Z": []}) == ["Z", "a", "c", "b", "d"]
    needs = {"cart": ["wheel", "box"], "wheel": ["rim", "hub"], "box": ["plank"]}
    assert order(needs) == ["hub", "plank", "box", "rim", "wheel", "cart"]


def test_a_need_may_be_named_twice():
    assert order({"a": ["b", "b"], "c": ["a", "b", "a"]}) == ["b", "a", "c"]
    assert waves({"a": ["b", "b"]}) == [["b"], ["a"]]


def test_only_wanted_parts_and_their_needs_are_made():
    needs = {"cart": ["wheel", "box"], "wheel": ["rim", "hub"], "box": ["plank"]}
    assert order(needs, ["wheel"]) == ["hub", "rim", "wheel"]
    assert order(needs, ["wheel", "box", "wheel"]) == ["hub", "plank", "box", "rim", "wheel"]
    assert order(needs, ["plank"]) == ["plank"]


def test_an_unknown_wanted_part_is_refused():
    assert refusal({"plane": ["engine"]}, ["engine", "wing", "tail"]) == "unknown part: wing"
    assert refusal({"plane": ["engine"]}, ["Plane"]) == "unknown part: Plane"


def test_waves_hold_all_that_can_be_made_at_once():
    needs = {"cart": ["wheel", "box"], "wheel": ["rim", "hub"], "box": ["plank"]}
    assert waves(needs) == [["hub", "plank", "rim"], ["box", "wheel"], ["cart"]]
    assert waves({"a": ["b"], "b": ["c"], "d": ["c"], "e": ["a", "c"]}) == [["c"], ["b", "d"], ["a"], ["e"]]
    assert waves({"y": [], "x": []}) == [["x", "y"]]


def test_a_circle_is_refused():
    assert circle(order, {"b": ["a"], "a": ["b"]}) == (["a", "b"], "cycle: a -> b -> a")
    assert circle(waves, {"b": ["a"], "a": ["b"]}) == (["a", "b"], "cycle: a -> b -> a")
    assert circle(order, {"a": ["a"]}) == (["a"], "cycle: a -> a")


def test_a_circle_begins_with_its_first_part_and_follows_the_needs():
    assert circle(order, {"c": ["b"], "b": ["a"], "a": ["c"]}) == (["a", "c", "b"], "cycle: a -> c -> b -> a")
    assert circle(waves, {"top": ["x"], "x": ["y"], "y": ["w"], "w": ["x", "base"]}) == (
        ["w", "x", "y"],
        "cycle: w -> x -> y -> w",
    )


def test_the_shortest_circle_is_reported():
    needs = {"a": ["b"], "b": ["c"], "c": ["a"], "x": ["y"], "y": ["x"]}
    assert circle(order, needs) == (["x", "y"], "cycle: x -> y -> x")
    assert circle(waves, {**needs, "z": ["a", "z"]}) == (["z"], "cycle: z -> z")
    shortcut = {"a": ["b", "d"], "b": ["c"], "c": ["d"], "d": ["a"]}
    assert circle(order, shortcut) == (["a", "d"], "cycle: a -> d -> a")


def test_of_equally_short_circles_the_smallest_is_reported():
    assert circle(order, {"x": ["y"], "y": ["x"], "p": ["q"], "q": ["p"]})[0] == ["p", "q"]
    assert circle(order, {"a": ["d", "c"], "d": ["b"], "c": ["b"], "b": ["a"]})[0] == ["a", "c", "b"]


def test_a_circle_which_is_not_wanted_does_no_harm():
    needs = {"a": ["b"], "b": ["a"], "c": ["d"], "e": ["a"]}
    assert order(needs, ["c"]) == ["d", "c"]
    assert circle(order, needs, ["c", "e"]) == (["a", "b"], "cycle: a -> b -> a")


def test_the_error_is_a_value_error_and_the_arguments_stay_as_they_were():
    assert issubclass(CycleError, ValueError)
    needs, wanted = {"b": ["c", "a", "a"]}, ["b"]
    assert order(needs, wanted) == ["a", "c", "b"]
    assert waves(needs) == [["a", "c"], ["b"]]
    assert needs == {"b": ["c", "a", "a"]}
    assert wanted == ["b"]
