"""What a provider would bill: the prompt cache, simulated, and the prices of a model's tokens."""

# For the rooms of this house; not public.
from timeline.billing._prices import RunningBill as RunningBill
from timeline.billing._prices import SummaryCall as SummaryCall
from timeline.billing._prices import company_of as company_of
from timeline.billing._prices import dollars_of as dollars_of
from timeline.billing._prices import price as price
from timeline.billing._prices import usage_price as usage_price
from timeline.billing._prices import with_read as with_read
from timeline.billing._prompt_cache import CacheRequest as CacheRequest
from timeline.billing._prompt_cache import CacheStep as CacheStep
from timeline.billing._prompt_cache import FlatBlock as FlatBlock
from timeline.billing._prompt_cache import Flattener as Flattener
from timeline.billing._prompt_cache import PromptCache as PromptCache
from timeline.billing._prompt_cache import numbered as numbered
from timeline.billing._prompt_cache import whole_prompt_ttl as whole_prompt_ttl
from timeline.billing._recorded import RecordedBill as RecordedBill
from timeline.billing._recorded import RecordedCall as RecordedCall
from timeline.billing._recorded import compared_bill as compared_bill
from timeline.billing._recorded import kept_in as kept_in
from timeline.billing._recorded import money as money
from timeline.billing._recorded import plural as plural
from timeline.billing._recorded import recorded_bill as recorded_bill
from timeline.billing._recorded import timeline_bill as timeline_bill
from timeline.billing._recorded import unlogged_in as unlogged_in
from timeline.billing._spending import TOOL as TOOL
from timeline.billing._spending import CallCost as CallCost
from timeline.billing._spending import PaidBlock as PaidBlock
from timeline.billing._spending import PaidCall as PaidCall
from timeline.billing._spending import Spending as Spending
from timeline.billing._spending import call_costs as call_costs
from timeline.billing._spending import call_of as call_of
from timeline.billing._spending import file_of as file_of
from timeline.billing._spending import part_of as part_of
from timeline.billing._spending import piece_costs as piece_costs
from timeline.billing._spending import reasons as reasons
from timeline.billing._spending import spending_of as spending_of
