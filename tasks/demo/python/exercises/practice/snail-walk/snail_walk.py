def walk(grid, clockwise=True):
    raise NotImplementedError


def unwalk(values, rows, columns):
    raise NotImplementedError
