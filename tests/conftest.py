"""Settings of every test."""

import os

from hypothesis import HealthCheck, settings

# "default" draws the same examples every time, so that a red run can be repeated; "explore" looks
# for new ones.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("default"))
settings.register_profile(
    "explore", settings.get_profile("default"), derandomize=False, max_examples=1000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
