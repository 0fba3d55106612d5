"""What the house needs from outside, as Protocols named after the need."""
