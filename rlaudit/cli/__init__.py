"""The command line: arguments in, one call, result out. A file is named after its command.

To add an option, imitate the one beside it: it goes into the record that carries it on, CompareSettings for what
decides a verdict, TokenTable (`tokens/open_table.py`) for what is read. A table is read in four ways (in parts, as a
sample, joined with the trainer's, on Ray): an option of what is read holds for each or is refused there. Options of
`compare` also stand in `tests/hostile_tables.py`.
"""
