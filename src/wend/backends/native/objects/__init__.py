"""Object files: compiled graphs that programs without Python call, as functions of C."""
