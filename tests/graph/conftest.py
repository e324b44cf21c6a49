"""Settings of the tests that draw graphs: few examples by default, many under `HYPOTHESIS_PROFILE=ci`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("ci", max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
