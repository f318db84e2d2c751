"""The store of results: what was computed once is not computed again."""

from weirlab.store.rows import COUNTS as COUNTS, PROVENANCE as PROVENANCE, Row as Row, frame_of as frame_of
from weirlab.store.store import Store as Store, engine as engine
