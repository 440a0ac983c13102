"""Capture of Python control flow: source rewriting, and the runtime that stages it."""
