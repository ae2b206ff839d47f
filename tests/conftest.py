"""What every test shares: how hard hypothesis tries, and plots that need no screen."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Must be set before matplotlib is first imported by any test.
os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline anywhere: a busy machine is not a defect of the code under test.
settings.register_profile("default", deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
# Continuous integration repeats itself exactly; new cases are looked for at a desk, and by `make verify`.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True)
settings.register_profile("verify", settings.get_profile("default"), max_examples=1_000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
