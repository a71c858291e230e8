"""What the pytest plugin does where a test asks for it; the plugin itself imports none of this."""
