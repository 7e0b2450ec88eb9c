import operator

from formula_lexer import FormulaError, tokenize

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
FUNCTIONS = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "sum": lambda *values: sum(values),
    "abs": abs,
}


def evaluate(formula, cells):
    return Parser(tokenize(formula), cells).formula()()


class Parser:
    """Reads tokens into functions without arguments, which compute when called."""

    def __init__(self, tokens, cells):
        self.tokens = tokens
        self.cells = cells
        self.index = 0

    @property
    def token(self):
        return self.tokens[self.index]

    def advance(self):
        token = self.token
        self.index += 1
        return token

    def unexpected(self):
        message = "unexpected end" if self.token.kind == "end" else f"unexpected '{self.token.text}'"
        return FormulaError(message, self.token.position)

    def expect(self, text):
        if self.token.text != text:
            raise self.unexpected()
        self.advance()

    def formula(self):
        value = self.sum()
        self.expect("")
        return value

    def sum(self):
        return self.left_to_right(self.product, "+-")

    def product(self):
        return self.left_to_right(self.signed, "*/")

    def left_to_right(self, operand, symbols):
        value = operand()
        while self.token.kind == "symbol" and self.token.text in symbols:
            value = binary(self.advance(), value, operand())
        return value

    def signed(self):
        if self.token.text == "-":
            self.advance()
            value = self.signed()
            return lambda: -value()
        return self.power()

    def power(self):
        base = self.atom()
        if self.token.text == "^":
            return binary(self.advance(), base, self.signed())
        return base

    def atom(self):
        if self.token.kind == "number":
            text = self.advance().text
            number = float(text) if "." in text else int(text)
            return lambda: number
        if self.token.kind == "name":
            name = self.advance()
            return self.call(name) if self.token.text == "(" else self.cell(name)
        self.expect("(")
        value = self.sum()
        self.expect(")")
        return value

    def cell(self, name):
        def compute():
            if name.text not in self.cells:
                raise FormulaError(f"unknown cell '{name.text}'", name.position)
            return self.cells[name.text]

        return compute

    def call(self, name):
        self.expect("(")
        arguments = [self.sum()]
        while self.token.text == ",":
            self.advance()
            arguments.append(self.sum())
        self.expect(")")

        def compute():
            if name.text not in FUNCTIONS:
                raise FormulaError(f"unknown function '{name.text}'", name.position)
            if name.text == "abs" and len(arguments) > 1:
                raise FormulaError(f"abs takes 1 argument, got {len(arguments)}", name.position)
            return FUNCTIONS[name.text](*(argument() for argument in arguments))

        return compute


def binary(symbol, left, right):
    def compute():
        first, second = left(), right()
        try:
            return OPERATORS[symbol.text](first, second)
        except ZeroDivisionError:
            raise FormulaError("division by zero", symbol.position) from None

    return compute
