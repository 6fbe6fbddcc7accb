"""The stepper: a session's compactions one after the other, recorded and simulated, on one timeline."""
