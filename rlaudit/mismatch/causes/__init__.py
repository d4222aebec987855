"""Known causes of mismatch, one file each: its signature and what would refute it."""
