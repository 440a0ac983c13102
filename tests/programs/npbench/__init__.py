"""NPBench's kernels, typed from their published definitions; a file per family."""
