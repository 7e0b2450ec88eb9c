from formula_cell import evaluate
from formula_lexer import FormulaError


def mistake(formula, cells=None):
    try:
        return "not refused", evaluate(formula, cells or {})
    except FormulaError as error:
        return error.message, error.position


def test_numbers_stand_for_themselves():
    assert evaluate("42", {}) == 42
    assert evaluate(" 2.50 ", {}) == 2.5
    assert evaluate("((7))", {}) == 7


def test_whole_numbers_stay_whole_until_divided():
    assert repr(evaluate("6 * 7", {})) == "42"
    assert repr(evaluate("6 / 3", {})) == "2.0"
    assert repr(evaluate("1.5 + 1.5", {})) == "3.0"


def test_products_bind_tighter_than_sums():
    assert evaluate("1 + 2 * 3", {}) == 7
    assert evaluate("2 * 3 + 4 * 5", {}) == 26
    assert evaluate("(1 + 2) * 3", {}) == 9


def test_equal_operators_go_from_left_to_right():
    assert evaluate("10 - 4 - 3", {}) == 3
    assert evaluate("100 / 5 / 2", {}) == 10
    assert evaluate("8 / 4 * 2", {}) == 4
    assert evaluate("9 - 5 + 1", {}) == 5


def test_powers_go_from_right_to_left():
    assert evaluate("2 ^ 3 ^ 2", {}) == 512
    assert evaluate("(2 ^ 3) ^ 2", {}) == 64
    assert evaluate("3 * 2 ^ 4", {}) == 48


def test_a_minus_before_an_operand():
    assert evaluate("-5", {}) == -5
    assert evaluate("--2", {}) == 2
    assert evaluate("2 * -3", {}) == -6
    assert evaluate("4 - -3", {}) == 7
    assert evaluate("-(1 + 2)", {}) == -3


def test_powers_bind_tighter_than_a_minus_on_their_left():
    assert evaluate("-2 ^ 2", {}) == -4
    assert evaluate("(-2) ^ 2", {}) == 4
    assert evaluate("2 ^ -1", {}) == 0.5
    assert evaluate("2 ^ -2 ^ 0", {}) == 0.5


def test_cells_are_looked_up_by_name():
    assert evaluate("A1 + tax_2 * 3", {"A1": 10, "tax_2": 4}) == 22
    assert evaluate("-B2 ^ 2", {"B2": 5}) == -25
    assert evaluate("min + a - A", {"min": 1, "a": 20, "A": 5}) == 16


def test_functions_take_formulas():
    assert evaluate("max(A1, B1) / 4", {"A1": 10, "B1": 6}) == 2.5
    assert evaluate("min(8, 3 + 2, 7)", {}) == 5
    assert evaluate("sum(1, 2, 3) * 2", {}) == 12
    assert evaluate("abs(3 - 10)", {}) == 7
    assert evaluate("max(min(4, 9), sum (2), abs(-3))", {}) == 4
    assert evaluate("sum(5) ^ 2 + min(6) + max(1)", {}) == 32


def test_a_formula_which_stops_too_early():
    assert mistake("") == ("unexpected end", 0)
    assert mistake("   ") == ("unexpected end", 3)
    assert mistake("1 +") == ("unexpected end", 3)
    assert mistake("2 * (3") == ("unexpected end", 6)
    assert mistake("max(1,") == ("unexpected end", 6)


def test_a_token_which_cannot_come_here():
    assert mistake("1 + * 2") == ("unexpected '*'", 4)
    assert mistake("1 2") == ("unexpected '2'", 2)
    assert mistake("(1))") == ("unexpected ')'", 3)
    assert mistake("min()") == ("unexpected ')'", 4)
    assert mistake("+1") == ("unexpected '+'", 0)
    assert mistake("1, 2") == ("unexpected ','", 1)
    assert mistake("3 A1", {"A1": 1}) == ("unexpected 'A1'", 2)
    assert mistake("(1, 2)") == ("unexpected ','", 2)
    assert mistake("(2)(3)") == ("unexpected '('", 3)


def test_a_character_which_the_lexer_does_not_know():
    assert mistake("1 & 2") == ("unexpected '&'", 2)
    assert mistake("1.") == ("unexpected '.'", 1)
    assert mistake("1 + * &") == ("unexpected '&'", 6)


def test_unknown_names():
    assert mistake("1 + B7", {"B6": 1}) == ("unknown cell 'B7'", 4)
    assert mistake("a1", {"A1": 1}) == ("unknown cell 'a1'", 0)
    assert mistake("2 * avg(1, 2)") == ("unknown function 'avg'", 4)
    assert mistake("A1(2)", {"A1": 1}) == ("unknown function 'A1'", 0)


def test_abs_takes_one_argument():
    assert mistake("1 - abs(2, 3)") == ("abs takes 1 argument, got 2", 4)
    assert mistake("abs(1, 2, 3)") == ("abs takes 1 argument, got 3", 0)


def test_division_by_zero():
    assert mistake("1 / 0") == ("division by zero", 2)
    assert mistake("8 / 2 / (3 - 3)") == ("division by zero", 6)
    assert mistake("5 + 0 ^ -1") == ("division by zero", 6)


def test_mistakes_of_grammar_are_reported_before_all_others():
    assert mistake("1 / 0 )") == ("unexpected ')'", 6)
    assert mistake("B7 +") == ("unexpected end", 4)
    assert mistake("avg(1) * abs(1, 2) 3") == ("unexpected '3'", 19)
