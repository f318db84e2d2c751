"""What all tests share: how many random cases the property tests draw, and how long a live test may take."""

import os

from hypothesis import HealthCheck, settings

# Ordinary runs repeat themselves (derandomized); `make fuzz` looks further.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
