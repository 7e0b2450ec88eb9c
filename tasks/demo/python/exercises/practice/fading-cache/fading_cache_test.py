import unittest

from fading_cache import FadingCache


class FadingCacheTest(unittest.TestCase):
    def setUp(self):
        self.now = 0

    def cache(self, capacity, lifetime):
        return FadingCache(capacity, lifetime, lambda: self.now)

    def test_stores_and_finds_values(self):
        cache = self.cache(3, 10)
        cache.put("a", 1)
        cache.put(("b", 2), [3, 4])
        self.assertEqual(cache.get("a"), 1)
        self.assertEqual(cache.get(("b", 2)), [3, 4])
        self.assertEqual(len(cache), 2)

    def test_a_missing_key_gives_the_default(self):
        cache = self.cache(3, 10)
        self.assertIsNone(cache.get("a"))
        self.assertEqual(cache.get("a", 5), 5)
        self.assertEqual(len(cache), 0)
        self.assertEqual(cache.keys(), [])

    def test_putting_a_key_again_replaces_its_value(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("a", 3)
        self.assertEqual(cache.keys(), ["a", "b"])
        self.assertEqual(cache.get("a"), 3)
        self.assertEqual(cache.get("b"), 2)

    def test_discards_the_least_recently_put(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("c", 3)
        self.assertEqual(cache.keys(), ["c", "b"])
        self.assertEqual(cache.get("a", "gone"), "gone")

    def test_getting_an_entry_uses_it(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2)
        self.assertEqual(cache.get("a"), 1)
        self.assertEqual(cache.keys(), ["a", "b"])
        cache.put("c", 3)
        self.assertEqual(cache.keys(), ["c", "a"])

    def test_looking_does_not_use_an_entry(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2)
        self.assertIn("a", cache)
        self.assertEqual(len(cache), 2)
        self.assertEqual(cache.keys(), ["b", "a"])
        cache.put("c", 3)
        self.assertNotIn("a", cache)
        self.assertEqual(cache.keys(), ["c", "b"])

    def test_an_entry_is_gone_at_the_end_of_its_life(self):
        cache = self.cache(2, 10)
        self.now = 5
        cache.put("a", 1)
        self.now = 14
        self.assertEqual(cache.get("a"), 1)
        self.now = 15
        self.assertEqual(cache.get("a", "gone"), "gone")
        self.assertNotIn("a", cache)
        self.assertEqual(len(cache), 0)
        self.assertEqual(cache.keys(), [])

    def test_getting_does_not_prolong_life_but_putting_does(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2)
        self.now = 9
        self.assertEqual(cache.get("a"), 1)
        cache.put("b", 3)
        self.now = 10
        self.assertEqual(cache.keys(), ["b"])
        self.now = 18
        self.assertEqual(cache.get("b"), 3)
        self.now = 19
        self.assertEqual(cache.keys(), [])

    def test_an_entry_may_have_a_lifetime_of_its_own(self):
        cache = self.cache(3, 10)
        cache.put("short", 1, 2)
        cache.put("long", 2, lifetime=30)
        cache.put("usual", 3)
        self.now = 2
        self.assertEqual(cache.keys(), ["usual", "long"])
        self.now = 29
        self.assertEqual(cache.keys(), ["long"])
        cache.put("long", 4)
        self.now = 38
        self.assertEqual(cache.get("long"), 4)
        self.now = 39
        self.assertEqual(len(cache), 0)

    def test_dead_entries_take_up_no_room(self):
        cache = self.cache(2, 10)
        cache.put("a", 1)
        cache.put("b", 2, lifetime=3)
        self.now = 3
        cache.put("c", 3)
        self.assertEqual(cache.keys(), ["c", "a"])
        cache.put("b", 4)
        self.assertEqual(cache.keys(), ["b", "c"])

    def test_counts_hits_and_misses_of_get_alone(self):
        cache = self.cache(2, 10)
        cache.put("a", None)
        self.assertIsNone(cache.get("a", 7))
        cache.get("a")
        cache.get("b")
        self.assertIn("a", cache)
        self.assertNotIn("b", cache)
        self.now = 10
        cache.get("a")
        cache.get("a")
        self.assertEqual(cache.hits, 2)
        self.assertEqual(cache.misses, 3)

    def test_nonsense_is_refused(self):
        with self.assertRaises(ValueError) as capacity:
            self.cache(0, 10)
        self.assertEqual(str(capacity.exception), "capacity must be at least 1")
        with self.assertRaises(ValueError) as lifetime:
            self.cache(1, 0)
        self.assertEqual(str(lifetime.exception), "lifetime must be positive")

    def test_a_refused_put_changes_nothing(self):
        cache = self.cache(1, 10)
        cache.put("a", 1)
        with self.assertRaises(ValueError) as error:
            cache.put("b", 2, lifetime=0)
        self.assertEqual(str(error.exception), "lifetime must be positive")
        with self.assertRaises(ValueError):
            cache.put("a", 3, lifetime=-1)
        self.assertEqual(cache.keys(), ["a"])
        self.assertEqual(cache.get("a"), 1)
