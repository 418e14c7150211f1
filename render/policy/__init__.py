"""The context of a render: policy, model, provider interface."""
