"""What files are made of: models that are closed to unknown fields, unions by `kind`, quantities, names and
selectors. Measures and scenarios are written in it."""
