"""Values that are one of a few, of which the run takes one: None or a number, some texts."""
