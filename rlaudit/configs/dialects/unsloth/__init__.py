"""unsloth."""
