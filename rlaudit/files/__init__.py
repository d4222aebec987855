"""Files: where they lie, how they are read and written, and what stands in the way."""
