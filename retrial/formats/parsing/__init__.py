"""Reading edits out of replies: what the formats share."""
