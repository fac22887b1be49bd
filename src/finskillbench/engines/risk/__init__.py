"""Risk engines: exposures, mandate monitoring, stress tests, remediation."""
