"""What a column or a token of a log may be instead of what it claims to be, a file each (`first_look.py`)."""
