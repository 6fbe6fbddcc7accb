"""What the model really got: the Messages-API request rebuilt from a transcript, per client generation."""
