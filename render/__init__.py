"""placeholder."""

from render._models import Model as Model
