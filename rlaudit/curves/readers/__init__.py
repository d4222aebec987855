"""Sinks that training curves can be read from: one file each.

To add one, imitate `metrics_jsonl.py`, or `csv_table.py` for a table: bind READER, which recognises a file by its
first bytes and reads it as rows; `rank` decides which is asked first. `pytest tests/curves/test_readers.py` asks for a
file as its writer leaves it (FILES); nothing else moves. What a framework calls its metrics stands in
`curves/metric_names.yaml`.
"""
