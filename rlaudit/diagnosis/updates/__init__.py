"""Weight updates judged: requests, version lag, parts that stay old, stale keys and values, and what to call."""
