"""Android devices, reached by adb: frameworks' own benchmark tools run there."""
