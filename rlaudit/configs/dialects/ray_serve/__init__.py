"""Ray Serve LLM."""
