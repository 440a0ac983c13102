"""Pictures of graphs: as SVG, and as pages that need nothing else."""
