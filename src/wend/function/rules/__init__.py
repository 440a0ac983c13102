"""User-defined derivative rules: `custom_vjp`, `custom_jvp`, `checkpoint`."""
