def checked(lifetime):
    if lifetime <= 0:
        raise ValueError("lifetime must be positive")
    return lifetime


class FadingCache:
    def __init__(self, capacity, lifetime, clock):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.lifetime = checked(lifetime)
        self.clock = clock
        self.hits = 0
        self.misses = 0
        self._entries = {}  # key -> (value, end of life), the least recently used first

    def _live(self):
        now = self.clock()
        self._entries = {key: entry for key, entry in self._entries.items() if now < entry[1]}
        return self._entries

    def put(self, key, value, lifetime=None):
        end = self.clock() + checked(self.lifetime if lifetime is None else lifetime)
        entries = self._live()
        entries.pop(key, None)
        if len(entries) >= self.capacity:
            del entries[next(iter(entries))]
        entries[key] = (value, end)

    def get(self, key, default=None):
        entries = self._live()
        if key not in entries:
            self.misses += 1
            return default
        self.hits += 1
        entries[key] = entries.pop(key)
        return entries[key][0]

    def keys(self):
        return list(reversed(self._live()))

    def __contains__(self, key):
        return key in self._live()

    def __len__(self):
        return len(self._live())
