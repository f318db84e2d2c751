"""The store of results: what was computed once is not computed again."""

from weirlab.store.rows import COUNTS, PROVENANCE, SCHEMA, Row, frame_of
from weirlab.store.store import Store, engine

__all__ = ["COUNTS", "PROVENANCE", "SCHEMA", "Row", "Store", "engine", "frame_of"]
