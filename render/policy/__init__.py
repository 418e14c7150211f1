"""What a stage may use besides the view: policy, model, context."""
