"""Programs in JavaScript that compute the bandit's update, recorded from the functions that train."""
