def cells(rows, columns):
    """The (row, column) pairs of a clockwise walk, in order."""
    top, left, bottom, right = 0, 0, rows - 1, columns - 1
    while top <= bottom and left <= right:
        yield from ((top, column) for column in range(left, right + 1))
        yield from ((row, right) for row in range(top + 1, bottom + 1))
        if top < bottom and left < right:
            yield from ((bottom, column) for column in range(right - 1, left - 1, -1))
            yield from ((row, left) for row in range(bottom - 1, top, -1))
        top, left, bottom, right = top + 1, left + 1, bottom - 1, right - 1


def walk(grid, clockwise=True):
    rows, columns = len(grid), len(grid[0]) if grid else 0
    if clockwise:
        return [grid[row][column] for row, column in cells(rows, columns)]
    return [grid[row][column] for column, row in cells(columns, rows)]


def unwalk(values, rows, columns):
    if len(values) != rows * columns:
        raise ValueError(f"expected {rows * columns} values, got {len(values)}")
    grid = [[None] * columns for _ in range(rows)]
    for value, (row, column) in zip(values, cells(rows, columns)):
        grid[row][column] = value
    return grid
