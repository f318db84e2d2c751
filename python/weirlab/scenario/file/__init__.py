"""The text of scenario files: a tree with places, other values in it, and what is wrong, in words."""
