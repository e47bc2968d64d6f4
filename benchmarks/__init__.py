"""Quality and speed of the methods, beside their peers; see README.md."""
