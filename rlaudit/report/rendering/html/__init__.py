"""The report as one HTML file: its sections, pictures as inline SVG, a style sheet, and no script."""
