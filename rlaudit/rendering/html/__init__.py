"""The report as one HTML file: sections of the document, pictures as inline SVG, a style sheet, and no script."""
