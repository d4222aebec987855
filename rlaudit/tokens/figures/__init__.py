"""What pictures of tokens need: sums and counts per arm, small enough for a report, made in one pass."""
