"""The device: running sets (``admission``), bandwidth, and what happens to a graphExecute (``rules``)."""
