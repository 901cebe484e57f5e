"""The settings of the autopilot: its expectations, limits and thresholds."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hedgerow.core.errors import HedgerowError


@dataclass(frozen=True, slots=True)
class AutopilotSettings:
    """The settings of the autopilot: its expectations, limits and thresholds.

    The limits bound what it may do, whatever it estimates. The thresholds rarely need a change.
    """

    # Expectations.
    horizon: float | None = None  # The workload will last this many days; None: as many queries come as the log has.
    half_life: float = 7.0  # After this many days a logged query counts half; a seventh counts as a day in `recency`.
    period: float = 7.0  # Rewrites within this many days count as recent.
    price: float | None = None  # An hour of the cluster costs this; the reasons then give gain and cost in money too.

    # Limits.
    least_bytes: float = 64 << 20  # A smaller table is left alone.
    least_new: float = 128 << 20  # Fewer bytes in new files wait for more.
    margin: float = 1.5  # The gain has to be at least this multiple of the cost.
    rewrites: float = 2.0  # Each byte is rewritten at most this often in a period.
    new_rewrites: float = 3.0  # A byte is rewritten at most this often since its insert, to lay out and join new files.
    cooldown: float = 1.0  # This many days have to pass between two rewrites of the same rows.
    most_bytes: float = float("inf")  # One run rewrites at most this many bytes.
    stand_back: float = 2.0  # After OPTIMIZE of others has replaced its layouts this often, it rewrites no more.
    seconds_per_hour: float = 600.0  # While it follows a table: of work in an hour. Work that began goes on to its end.
    pause: float = 10.0  # Seconds between two checks whether a followed table has changed.

    # Thresholds.
    search_interval: float = 10.0  # Search again if queries take at least this many times as long as the last search.
    without_news: float = 10.0  # Without news, search again once they ran this many intervals.
    longest_backoff: float = 10.0  # Searches that found nothing lengthen both at most by this factor.
    early_search: float = 3.0  # Search earlier once unexpected queries took this many times as long as the last search.
    join_at: float = 4.0  # Files of a block are joined once there are so many, if queries open them often enough.
    least_gain: float = 0.05  # A gain below this share of the time counts as none: estimates have errors.
    nearly_all: float = 0.8  # If files with this share of the bytes pay for a rewrite, rewrite all.
    far_fewer: float = 0.5  # Learn again if the files that pay hold less than this share of those learned for.
    statistics_cost: float = 0.3  # New statistics take this share of the time of a rewrite.

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if not isinstance(value, int | float) and not (value is None and setting.default is None):
                raise HedgerowError(f"{setting.name} of AutopilotSettings is a number, not {value!r}")
