"""The built-in scenarios: YAML files that say what to run."""
