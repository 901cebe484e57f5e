"""Names for the types of arrays that most modules use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]  # sets of outcomes: FALSE, TRUE and NULL are a bit each
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
