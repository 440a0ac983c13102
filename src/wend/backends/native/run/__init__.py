"""Running machine code: executables, workspaces, marshalling, host calls and threads."""
