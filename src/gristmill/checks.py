"""The contract of every learner, as functions that third parties can run too."""
