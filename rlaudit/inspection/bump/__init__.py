"""A bump of vLLM: two trees of a repository, the pins that move between them, and what that changes."""
