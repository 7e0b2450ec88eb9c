"""Files made of results.json for other programs: a CI's pages, spreadsheets, leaderboards."""
