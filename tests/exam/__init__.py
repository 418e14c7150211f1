"""`make exam`: reader, grader and table, played by the fake provider."""
