"""What theory says of a scenario: its hot queues, their stability, and what stresses them most. Names are in
the modules."""
