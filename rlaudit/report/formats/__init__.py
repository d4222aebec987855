"""Output formats: one file each, all rendered from the same document (rlaudit-report/1)."""
