class FadingCache:
    def __init__(self, capacity, lifetime, clock):
        raise NotImplementedError

    def put(self, key, value, lifetime=None):
        raise NotImplementedError

    def get(self, key, default=None):
        raise NotImplementedError

    def keys(self):
        raise NotImplementedError

    def __contains__(self, key):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError
