"""One task and its model calls: budget, journal, permits, replies that are used again."""
