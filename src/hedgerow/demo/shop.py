"""A shop's events, orders and customers: made by Spark in seconds, and the same each time.

Events come in the order of their time, and lie in a folder for each day. A customer has one country and one segment;
every fortieth event belongs to an order.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from hedgerow.spark.start.session import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_DAY, DAYS = date(2026, 1, 1), 30
COUNTRIES = "de fr us it es gb pl nl at ch be se dk no fi cz pt ie hu gr".split()  # noqa: SIM905
SEGMENTS = "private student family business school club wholesale hotel press museum".split()  # noqa: SIM905
PAGES = "product search home category cart account wishlist help checkout returns stores gift".split()  # noqa: SIM905
ROUTES = "start list view done".split()  # noqa: SIM905
CAMPAIGNS = 40
ROWS_OF_A_FILE = 40_000
_ROWS_OF_A_CUSTOMER, _ROWS_OF_AN_ORDER = 200, 40
_MICROSECONDS_OF_A_DAY = 86_400_000_000
# Spark sorts rows by their folder before it writes, unless it may keep some files open.
_WRITING = {"spark.sql.maxConcurrentOutputFileWriters": "4"}

# In these texts, random(k) is a number from 0 to 1 that depends on the row's number i and on k.
_EVENTS = """
SELECT
    substr(md5(CAST(i AS STRING)), 1, 16) AS event_id,
    timestamp_micros(unix_micros(CAST(day AS TIMESTAMP)) + CAST((i % {of_a_day} + random(1)) * {step} AS BIGINT)) AS at,
    customer_id,
    if(i % {of_an_order} = 0, i DIV {of_an_order}, NULL) AS order_id,
    country,
    concat('/', page, '/', {route}) AS url,
    CASE WHEN status < 0.955 THEN 200 WHEN status < 0.97 THEN 301 WHEN status < 0.993 THEN 404
        WHEN status < 0.998 THEN 500 ELSE 503 END AS status,
    CAST(40 + 900 * pow(random(3), 16) + 10 * (item % 7) AS INT) AS took_ms,
    400 + 150 * (item % 4) AS limit_ms,
    CAST(if(random(4) < 0.2, 1 + 99999 * pow(random(5), 9), 0) AS INT) AS amount,
    CAST(1 + 8 * pow(random(6), 14) AS INT) AS attempts,
    if(random(7) < 0.08, map('device', device, 'campaign', concat('c', CAST({campaigns} * random(8) AS INT))),
        map('device', device)) AS attributes,
    concat('agent ', i % 17, '.', item % 90, ' session ', hex(xxhash64(customer_id, i DIV 1000)),
        ' trace ', hex(xxhash64(i, 14)), hex(xxhash64(i, 15))) AS payload,
    day
FROM (
    SELECT *, {country} AS country, {page} AS page, random(9) AS status, CAST(500 * pow(random(10), 2) AS INT) AS item,
        element_at(array('phone', 'desktop', 'tablet', 'app'), CAST(1 + 4 * pow(random(11), 2) AS INT)) AS device
    FROM (
        SELECT i, CAST({customers} * pow(random(12), 2) AS BIGINT) AS customer_id,
            date_add(DATE '{first_day}', CAST(i DIV {of_a_day} AS INT)) AS day
        FROM numbers
    )
)
"""
_CUSTOMERS = "SELECT i AS id, {country} AS country, {segment} AS segment FROM (SELECT i, i AS customer_id FROM numbers)"
_ORDERS = """
SELECT id, CAST({customers} * pow(random(12), 2) AS BIGINT) AS customer_id,
    element_at(array('paid', 'sent', 'returned', 'lost'), CAST(1 + 4 * pow(random(13), 4) AS INT)) AS state
FROM (SELECT i AS id, i * {of_an_order} AS i FROM numbers)
"""


def one_of(values: list[str], number: str, power: float) -> str:
    """Return the text of an expression that chooses a value by a number from 0 to 1, earlier ones more often."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"element_at(array({listed}), CAST(1 + {len(values)} * pow({number}, {power}) AS INT))"


def make_shop(spark: SparkSession, folder: str, rows: int) -> int:
    """Write the tables, each into its folder; return the number of events, which is a multiple of the days."""
    of_a_day = max(1, rows // DAYS)
    rows = of_a_day * DAYS
    counts = {"events": rows, "orders": rows // _ROWS_OF_AN_ORDER, "customers": max(100, rows // _ROWS_OF_A_CUSTOMER)}
    of_customer = "(pmod(xxhash64(customer_id, {}), 1000000) / 1e6)"
    facts = {
        "of_a_day": of_a_day,
        "step": _MICROSECONDS_OF_A_DAY / of_a_day,
        "of_an_order": _ROWS_OF_AN_ORDER,
        "customers": counts["customers"],
        "first_day": FIRST_DAY,
        "campaigns": CAMPAIGNS,
        "country": one_of(COUNTRIES, of_customer.format(1), 2.5),
        "segment": one_of(SEGMENTS, of_customer.format(2), 1.5),
        "page": one_of(PAGES, "random(2)", 2),
        "route": one_of(ROUTES, "random(16)", 1.5),
    }
    parts = {"events": DAYS * max(1, of_a_day // ROWS_OF_A_FILE), "orders": 4, "customers": 1}
    with temporary_settings(spark, _WRITING):
        for name, text in (("events", _EVENTS), ("orders", _ORDERS), ("customers", _CUSTOMERS)):
            spark.range(0, counts[name], 1, parts[name]).toDF("i").createOrReplaceTempView("numbers")
            sql = re.sub(r"random\((\d+)\)", r"(pmod(xxhash64(i, \1), 1000000) / 1e6)", text.format(**facts))
            writer = spark.sql(sql).write
            (writer.partitionBy("day") if name == "events" else writer).parquet(f"{folder}/{name}")
    return rows
