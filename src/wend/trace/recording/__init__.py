"""Recordings: graphs under construction, their regions, captures and arguments."""
