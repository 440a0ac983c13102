"""Graphs lowered to dataflow: loops as cycles, branches as tokens that take one way (D41)."""
