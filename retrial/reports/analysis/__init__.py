"""Statistics: every module counts one thing over the instances of a run, or compares runs."""
