"""From a report to what people read and machines parse: an outline of it, drawn by every format."""
