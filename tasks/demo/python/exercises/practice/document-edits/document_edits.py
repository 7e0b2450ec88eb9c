class EditError(ValueError):
    pass


def look(document, path):
    raise NotImplementedError


def edit(document, edits):
    raise NotImplementedError
