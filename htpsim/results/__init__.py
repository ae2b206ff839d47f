"""Records, metrics, statistics of runs."""
