"""What `rlaudit ablate` carries out: a recipe once, once for each release, or in a bisection; judged as it forms."""
