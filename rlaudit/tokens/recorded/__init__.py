"""A recording as a token table: which sequences are whole, what the trainer made of them, and from which weights."""
