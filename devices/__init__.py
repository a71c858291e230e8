"""What a device is and what can be read on it: memory, CPU, clocks, temperature, power."""
