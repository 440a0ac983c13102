"""`GradientTape`: operations recorded as they run, and gradients of what was recorded."""
