"""Functions that are traced once per signature, and their derivatives."""
