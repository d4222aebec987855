"""The functions that `import rlaudit` offers, a file each. What they do is what the command of that name does."""
