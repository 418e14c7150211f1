"""What a stage may know besides the view: policy, model, context."""
