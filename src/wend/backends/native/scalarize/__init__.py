"""Scalar replacement of small arrays: after it, their elements live in registers."""
