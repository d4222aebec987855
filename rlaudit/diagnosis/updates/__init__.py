"""What `ablate weight-update` shows, judged: requests, version lag, parts that stay old, stale-kv, and what to call."""
