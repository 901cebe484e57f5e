-- Each query is followed by what it implies for each table it reads. Tables: t(a, b, s)  u(a, c, s)  v(c, d, flag).

-- a condition goes to the table it speaks of; constants stand right, BETWEEN opens, bounds merge
SELECT * FROM t WHERE 3 < a AND a BETWEEN 2 AND 9 AND b IS NOT NULL;
-- t: a >= 4 AND a < 10 AND b IS NOT NULL

-- names without a qualifier belong to the one table that has them
SELECT b, d FROM t JOIN v ON b = d WHERE flag AND b > 1;
-- t: b >= 2
-- v: flag = TRUE

-- the strongest condition on each side of an OR of ANDs
SELECT * FROM t JOIN u ON t.a = u.a WHERE (t.b = 1 AND u.c = 2) OR (t.b = 2 AND u.c = 1);
-- t: b IN (1, 2)
-- u: c IN (1, 2)

-- one side of the OR says nothing about u
SELECT * FROM t JOIN u ON t.a = u.a WHERE (t.b = 1 AND u.c = 2) OR t.b = 2;
-- t: b IN (1, 2)
-- u: TRUE

-- NOT moves inward
SELECT * FROM t, u WHERE NOT (t.a < 3 OR u.c = 1 OR NOT t.s LIKE 'ab%');
-- t: a >= 3 AND startswith(s, 'ab')
-- u: c <> 1

-- ON of a LEFT JOIN filters the right side only
SELECT * FROM t LEFT JOIN u ON t.a = u.a AND u.c > 2 AND t.b > 1;
-- t: TRUE
-- u: c >= 3

-- WHERE on the nullable side: not if NULL may pass
SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.c IS NULL AND t.b > 1;
-- t: b >= 2
-- u: TRUE

SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE coalesce(u.c, 1) = 1;
-- t: TRUE
-- u: TRUE

-- WHERE on the nullable side: NULL cannot pass, so the join is an inner one
SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.c = 1;
-- t: TRUE
-- u: c = 1

-- RIGHT and FULL
SELECT * FROM t RIGHT JOIN u ON t.a = u.a AND t.b = 1 AND u.c = 1 WHERE t.s IS NULL;
-- t: b = 1
-- u: TRUE

SELECT * FROM t FULL JOIN u ON t.a = u.a AND t.b = 1 AND u.c = 1 WHERE t.s = 'ab' OR t.s IS NULL;
-- t: TRUE
-- u: TRUE

-- an inner join after an outer one still filters its own side
SELECT * FROM t LEFT JOIN u ON t.a = u.a JOIN v ON v.c = u.c AND v.d = 1 AND u.s IS NULL;
-- t: TRUE
-- u: TRUE
-- v: d = 1

-- USING: the merged column of an inner or left join is the left one
SELECT * FROM t JOIN u USING (a) WHERE a = 3 AND b = 1;
-- t: a = 3 AND b = 1
-- u: TRUE

SELECT * FROM t FULL JOIN u USING (a) WHERE a = 3;
-- t: TRUE
-- u: TRUE

-- through derived tables, CTEs and renamed columns
SELECT * FROM (SELECT a + 0 AS p, b AS q FROM t WHERE s = 'ab') AS d WHERE q = 1 AND p < 3;
-- t: (a + 0 < 3) AND b = 1 AND s = 'ab'

WITH w(x) AS (SELECT a FROM t WHERE b = 1) SELECT * FROM w WHERE x > 2 UNION ALL SELECT * FROM w WHERE x < 1;
-- t: (a >= 3 AND b = 1) OR (a < 1 AND b = 1)

-- not below LIMIT, not below a window
SELECT * FROM (SELECT a, b FROM t WHERE b < 5 ORDER BY a, b LIMIT 3) AS d WHERE a = 2;
-- t: b < 5

SELECT * FROM (SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM t WHERE b < 5) AS d WHERE a = 2;
-- t: b < 5

-- group keys yes, aggregates no; ROLLUP makes NULLs of its own; HAVING is left alone
SELECT * FROM (SELECT a, sum(b) AS n FROM t GROUP BY a HAVING count(*) > 1) AS d WHERE a = 2 AND n > 3;
-- t: a = 2

SELECT * FROM (SELECT a, sum(b) AS n FROM t GROUP BY ROLLUP (a)) AS d WHERE a IS NULL;
-- t: TRUE

SELECT * FROM (SELECT max(a) AS m FROM t) AS d WHERE m = 2;
-- t: TRUE

-- a function nobody has heard of may be an aggregate
SELECT * FROM (SELECT entropy(a) AS m FROM t) AS d WHERE m > 1;
-- t: TRUE

-- set operations
SELECT * FROM (SELECT a FROM t UNION SELECT c FROM u) AS d WHERE a = 2;
-- t: a = 2
-- u: c = 2

SELECT * FROM (SELECT a FROM t EXCEPT SELECT c FROM u WHERE s = 'b') AS d WHERE a = 2;
-- t: a = 2
-- u: c = 2 AND s = 'b'

-- subqueries keep their own conditions
SELECT * FROM t WHERE a IN (SELECT a FROM u WHERE c = 1) AND b NOT IN (SELECT c FROM v WHERE d = 2 AND c IS NOT NULL);
-- t: TRUE
-- u: c = 1
-- v: c IS NOT NULL AND d = 2

SELECT * FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.c = 1 AND t.b = 2);
-- t: TRUE
-- u: c = 1

SELECT *, (SELECT max(c) FROM u WHERE u.a = t.a AND u.s = 'ab') AS m FROM t WHERE b > (SELECT min(d) FROM v WHERE flag);
-- t: TRUE
-- u: s = 'ab'
-- v: flag = TRUE

-- one table twice: a row matters if either place needs it
SELECT * FROM t AS x JOIN t AS y ON x.a = y.b WHERE x.s = 'ab' AND y.s = 'b';
-- t: s IN ('ab', 'b')

-- negated LIKE, NOT IN, null-safe equality, a bare boolean
SELECT * FROM t WHERE s NOT LIKE 'ab%' AND a NOT IN (1, 2);
-- t: NOT (startswith(s, 'ab')) AND a NOT IN (1, 2)

SELECT * FROM v WHERE NOT flag AND c IS NOT DISTINCT FROM 3 AND d IS DISTINCT FROM 1;
-- v: c = 3 AND c IS NOT NULL AND (d <> 1 OR d IS NULL) AND flag <> TRUE

-- what changes from run to run says nothing
SELECT * FROM t WHERE a = 1 AND random() < 2;
-- t: a = 1

-- SEMI and ANTI joins
SELECT * FROM t SEMI JOIN u ON t.a = u.a AND t.b = 1 AND u.c = 2;
-- t: b = 1
-- u: c = 2

SELECT * FROM t ANTI JOIN u ON t.a = u.a AND t.b = 1 AND u.c = 2;
-- t: TRUE
-- u: c = 2
