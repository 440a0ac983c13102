"""Rules of the user's own: `custom_vjp`, `custom_jvp`, `checkpoint`."""
