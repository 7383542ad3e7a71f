# The native runtime has the classes of the pure one: type-checkers see those, and stubtest compares.

from ._pure import ActorCell as ActorCell
from ._pure import ActorSystem as ActorSystem
from ._pure import BoundedNodeQueue as BoundedNodeQueue
from ._pure import PriorityExecutor as PriorityExecutor
from ._pure import StatusWord as StatusWord
from ._pure import SystemCore as SystemCore
from ._pure import current_cell as current_cell
from ._pure import implementation as implementation
