"""What toolpost costs, beside its peers and alone: `make bench`."""
