"""What rules ask and answer: one config under two releases, and the findings about it."""
