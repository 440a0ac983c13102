"""The exceptions that handlers and context managers of user code catch."""
