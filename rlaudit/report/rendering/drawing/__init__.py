"""How pictures are drawn with matplotlib: colours, axes, forests of intervals."""
