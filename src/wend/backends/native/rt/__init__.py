"""The run-time library: native functions shared by modules, compiled at their first use (D50)."""
