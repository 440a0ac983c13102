"""Drawings of graphs: as SVG, and as self-contained HTML pages."""
