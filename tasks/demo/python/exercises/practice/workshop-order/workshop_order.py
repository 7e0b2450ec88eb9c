class CycleError(ValueError):
    pass


def order(needs, wanted=None):
    raise NotImplementedError


def waves(needs):
    raise NotImplementedError
