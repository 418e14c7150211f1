"""Facts about models: the table that comes with the library, and the user's own file, which extends it."""

from timeline._models._table import describe_model as describe_model
from timeline._models._table import guess_about as guess_about
from timeline._models._table import known_models as known_models
from timeline._models._table import model_named as model_named
from timeline._models._table import models_file as models_file
from timeline._models._table import own_models as own_models
from timeline._models._table import refresh_models as refresh_models
