"""What several vision-language models do to one Hexagon Tensor Processor, simulated event by event."""
