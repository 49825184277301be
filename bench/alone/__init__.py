"""What toolpost costs by itself: its inbox, its mocks, its growth, its memory."""
