def evaluate(formula, cells):
    raise NotImplementedError
