"""Device profiles that edgebench ships; `edgebench.harness.device_profiles` reads them."""
