-- the first example
SELECT url, date_trunc('hour', ts) AS hour,
       count(*) AS views, sum(duration_ms) AS total_ms, avg(duration_ms) AS avg_ms
FROM source
WHERE user_id IS NOT NULL
GROUP BY url, hour
-- no GROUP BY
SELECT count(*) AS n, count(user_id) AS users, sum(duration_ms) AS total, avg(small) AS mean, min(url) AS first_url, max(ts) AS newest FROM source
-- no GROUP BY over nothing
SELECT count(*) AS n, sum(duration_ms) AS total, avg(d) AS mean, min(url) AS u FROM source WHERE duration_ms > 9000000000000000000 AND url = ''
-- filters
SELECT url, count(*) FILTER (WHERE ok) AS good, count(user_id) FILTER (WHERE NOT ok) AS bad,
       sum(duration_ms) FILTER (WHERE ok) AS good_ms, avg(duration_ms) FILTER (WHERE d > 0) AS avg_ms,
       min(ts) FILTER (WHERE ok) AS first_good, max(url) FILTER (WHERE small > 0) AS u
FROM source GROUP BY url
-- sums of every number
SELECT ok, sum(small) AS a, sum("we ird") AS b, sum(duration_ms) AS c, sum(price) AS p, sum(d) AS e, sum(f) AS g,
       sum(duration_ms::HUGEINT) AS h, sum((abs(small::INT) % 200)::UTINYINT) AS i, sum(ok) AS oks, sum(price * 3) AS j
FROM source GROUP BY ok
-- averages of every number
SELECT ok, avg(small) AS a, avg("we ird") AS b, avg(duration_ms) AS c, avg(price) AS p, avg(d) AS e, avg(f) AS g, mean(duration_ms::HUGEINT * 1000) AS h
FROM source GROUP BY ok
-- least of every type
SELECT clock > TIME '12:00:00' AS k, min(ok) AS a, min(small) AS b, min("we ird") AS c, min(duration_ms) AS d, min(f) AS e, min(price) AS p, min(url) AS u,
       min(raw) AS r, min(day) AS dd, min(clock) AS cl, min(local) AS lo, min(ts) AS t, min(id) AS i, min(duration_ms::HUGEINT) AS h
FROM source GROUP BY k
-- greatest of every type
SELECT clock > TIME '12:00:00' AS k, max(ok) AS a, max(small) AS b, max("we ird") AS c, max(duration_ms) AS d, max(f) AS e, max(price) AS p, max(url) AS u,
       max(raw) AS r, max(day) AS dd, max(clock) AS cl, max(local) AS lo, max(ts) AS t, max(id) AS i, max(d) AS dbl
FROM source GROUP BY k
-- keys of every type
SELECT url, ok, small, "we ird", f, price, raw, day, clock, local, ts, id, d, count(*) AS n
FROM source GROUP BY ALL
-- key of a double
SELECT d, count(*) AS n, sum(duration_ms) AS s FROM source GROUP BY d
-- key of a list
SELECT [url, user_id] AS pair, [duration_ms, small] AS nums, count(*) AS n FROM source GROUP BY ALL
-- key of bytes and of a date
SELECT raw, day, count(*) AS n FROM source GROUP BY raw, day
-- keys out of order
SELECT url, user_id, local, count(*) AS n, day, max(d) AS m FROM source GROUP BY day, 2, local, url
-- meta columns
SELECT _topic AS topic, _partition AS part, max(_offset) AS last, count(*) AS n, max(_timestamp) AS t, count(_key) AS keyed
FROM source GROUP BY _topic, part
-- a CTE over a star
WITH s AS (SELECT *, lower(url) AS u FROM source WHERE user_id IS NOT NULL)
SELECT u AS url, date_trunc('day', ts) AS day, count(*) AS views FROM s GROUP BY u, date_trunc('day', ts)
-- CTEs over one another, with a subquery
WITH a AS (SELECT url AS u, duration_ms AS ms FROM source), b AS (SELECT u, ms::HUGEINT * 2 AS twice FROM a WHERE ms > 0)
SELECT u, sum(twice) AS s FROM (SELECT upper(u) AS u, twice FROM b) t GROUP BY t.u
-- a CTE that is named source
WITH source AS (SELECT url, duration_ms FROM source WHERE ok) SELECT url, count(*) AS n FROM source GROUP BY url
-- a materialized CTE
WITH a AS MATERIALIZED (SELECT url FROM source) SELECT url, count(*) AS n FROM a GROUP BY url
-- unnest in a subquery
SELECT part, count(*) AS n, sum(duration_ms) AS ms FROM (SELECT duration_ms, unnest(string_split(url, '/')) AS part FROM source) GROUP BY part
-- columns renamed by position
SELECT a, count(*) AS n FROM (SELECT * FROM source) AS s (a, b, c) GROUP BY a
-- star with changes
SELECT u, sum(duration_ms) AS s FROM (SELECT * EXCLUDE (user_id) REPLACE (duration_ms::HUGEINT * 2 AS duration_ms) RENAME (url AS u) FROM source) GROUP BY u
-- qualified names
SELECT s.url, s.ok AS fine, count(s.user_id) AS n FROM source AS s GROUP BY url, s.ok
-- the same expression twice
SELECT url AS a, url AS b, count(*) AS n, count(*) AS m, sum(duration_ms) AS s, avg(duration_ms) AS t FROM source GROUP BY url
-- group by the expression that an alias hides
SELECT lower(url) AS url, count(*) AS n FROM source GROUP BY lower(url)
-- group by position
SELECT lower(url) AS url, count(*) AS n FROM source GROUP BY 1
-- an alias used by the filter
SELECT lower(url) AS u, count(*) AS n FROM source WHERE u <> '/a' GROUP BY u
-- CASE, casts and lists
SELECT CASE WHEN duration_ms > 100 THEN 'slow' WHEN duration_ms IS NULL THEN NULL ELSE 'fast' END AS speed,
       count(*) AS n, sum(list_sum(list_transform([small::INT, 1], lambda x: x * 2))) AS s, max(TRY_CAST(url AS BIGINT)) AS b
FROM source GROUP BY speed
-- JSON
SELECT doc->>'a' AS a, count(*) AS n, sum(CAST(doc->>'b' AS DOUBLE)) AS b, min(json_extract_string(doc, '$.c')) AS c FROM source GROUP BY a
-- a long name
SELECT url, avg(duration_ms) AS average_of_all_the_milliseconds_that_a_page_of_this_url_took_ab FROM source GROUP BY url
-- states that would clash
SELECT url AS s__s, sum(duration_ms) AS s, count(*) AS s__n FROM source GROUP BY 1
-- from first
FROM source SELECT url, count(*) AS n GROUP BY url
-- quoted names
SELECT url AS "Weird ""Name""", sum(duration_ms) AS "Total ms" FROM source GROUP BY "Weird ""Name"""
-- a trailing semicolon and comments
SELECT url, -- the page
       count(*) AS n /* all */ FROM source GROUP BY url;
-- nested CTEs
WITH a AS (WITH b AS (SELECT url, ok FROM source) SELECT url FROM b WHERE ok) SELECT url, count(*) AS n FROM a GROUP BY url
-- columns of source named by position
SELECT a, count(b) AS n FROM source AS t (a, b) GROUP BY a
-- columns of a CTE named by position
WITH t (a, b) AS (SELECT url, duration_ms FROM source) SELECT a, sum(b) AS s FROM t GROUP BY a
-- a star below a star
SELECT url, count(*) AS n FROM (SELECT * FROM (FROM source) a) b GROUP BY b.url
-- days of another time zone
SELECT date_trunc('day', ts AT TIME ZONE 'America/New_York') AS ny_day, count(*) AS n FROM source WHERE isfinite(ts) GROUP BY ny_day
-- GROUP BY nothing
SELECT count(*) AS n, max(url) AS m FROM source GROUP BY ()
-- names in front
SELECT u: lower(url), n: count(*) FROM source GROUP BY u
-- TRY and list comprehension
SELECT TRY(CAST(url AS BIGINT)) AS number, sum(len([x FOR x IN string_split(url, '/') IF x <> ''])) AS parts FROM source GROUP BY number
-- unsigned numbers
SELECT ok, max(abs(small::INT)::UBIGINT) AS a, sum(abs(small::INT)::UBIGINT) AS b, avg(abs(small::INT)::UHUGEINT) AS c,
       max((small % 100)::TINYINT) AS d, min(abs(small::INT)::USMALLINT) AS e, min(abs("we ird"::BIGINT)::UINTEGER) AS f, max(ts::TIMESTAMP::TIMESTAMP_S) AS g
FROM source WHERE isfinite(ts) GROUP BY ok
-- conditions and bits
SELECT url, count_if(ok) AS good, count(*) FILTER (WHERE ok) AS same, countif(duration_ms > 5) FILTER (WHERE small > 0) AS n, bool_and(ok) AS every_ok, bool_or(d > 0) AS some,
       bit_and(small) AS ba, bit_or("we ird") AS bo, bit_xor(duration_ms) AS bx, bit_and((abs(small::INT) % 200)::UTINYINT) AS bu, bool_and(ok) FILTER (WHERE small > 0) AS fa
FROM source GROUP BY url
-- conditions and bits over nothing
SELECT count_if(ok) AS good, bool_and(ok) AS every_ok, bool_or(ok) AS some, bit_and(small) AS ba, bit_or(small) AS bo, bit_xor(small) AS bx FROM source WHERE url = '/a' AND user_id = 'Z'
-- first and last in the log
SELECT url, first(user_id) AS f, last(duration_ms) AS l, last(user_id) AS lu, any_value(small) AS a, arbitrary(abs(small::INT) % 7) FILTER (WHERE ok) AS b, last(ts) AS lt,
       last(id) AS li, first(raw) AS fr, last(price) AS lp, first(day) AS fd
FROM source GROUP BY url
-- first and last over nothing
SELECT first(url) AS f, last(small) AS l, any_value(small) AS a, arg_max(url, small) AS m FROM source WHERE url = '/a' AND user_id = 'Z'
-- values at the least and the greatest
SELECT url, arg_max(user_id, ts) AS a, arg_min(duration_ms, small) AS b, max_by(price, user_id) AS c, min_by(ok, id) AS d, argmax(user_id, raw) AS e,
       arg_max_null(user_id, small) AS f, arg_min_null(day, clock) FILTER (WHERE ok) AS g, arg_max(small, ts) AS h, arg_max(url, ok) AS i, arg_min(url, d) AS j, arg_max(small, f) AS k
FROM source GROUP BY url
-- last below a subquery, a CTE and an unnest
WITH a AS (SELECT *, lower(url) AS u FROM source), b AS (SELECT u, user_id, duration_ms FROM a)
SELECT part, last(user_id) AS l, arg_max(user_id, duration_ms) AS m FROM (SELECT user_id, duration_ms, unnest(string_split(u, '/')) AS part FROM b) GROUP BY part
-- spreads
SELECT ok, var_pop(small) AS vp, var_samp(small) AS vs, variance(d) FILTER (WHERE d < 10) AS v, stddev("we ird") AS s, stddev_pop(small) AS sp, stddev_samp(price) AS ss, count(small) AS n, avg(small) AS m
FROM source GROUP BY ok
-- spreads over nothing
SELECT var_pop(small) AS vp, stddev(small) AS s, covar_pop(small, d) AS c, corr(small, d) AS r, regr_slope(small, d) AS sl FROM source WHERE url = '/a' AND user_id = 'Z'
-- two variables
SELECT ok, covar_pop(small, f) AS cp, covar_samp(small, f) AS cs, corr(small, "we ird") AS r, regr_slope(small, "we ird") AS sl, regr_r2(small, "we ird") AS r2,
       corr("we ird", price) FILTER (WHERE price > 0) AS rp
FROM source GROUP BY ok
-- different values
SELECT ok, count(DISTINCT url) AS urls, count(DISTINCT small % 3) AS smalls, count(DISTINCT ts) FILTER (WHERE small > 0) AS times, count(DISTINCT raw) AS raws, count(DISTINCT d) AS ds,
       count(DISTINCT id) AS ids, count(DISTINCT price) AS prices, count(DISTINCT ok) AS oks, count(DISTINCT day) AS days, count(url) AS n
FROM source GROUP BY ok
-- about how many different values
SELECT ok, approx_count_distinct(url) AS urls, approx_count_distinct(duration_ms) FILTER (WHERE small > 0) AS ms, approx_count_distinct(raw) AS raws, approx_count_distinct(ts) AS times
FROM source GROUP BY ok
-- quantiles
SELECT ok, approx_quantile(duration_ms, 0.5) AS p50, approx_quantile(d, 0.99) AS p99, approx_quantile(price, 0) AS low, approx_quantile(small, 1) FILTER (WHERE small > 0) AS high
FROM source GROUP BY ok
-- histograms
SELECT ok, histogram(url) AS urls, histogram(small) FILTER (WHERE small > 0) AS smalls, histogram(day) AS days, histogram(price) AS prices, histogram(d) AS ds, histogram(ok) AS oks
FROM source GROUP BY ok
-- histograms of few values
SELECT id, histogram(small % 3) AS thirds, histogram(ok) FILTER (WHERE small > 50) AS oks FROM source GROUP BY id
-- a histogram of nothing
SELECT histogram(user_id) AS h, count(*) AS n FROM source WHERE url = '/a' AND user_id = 'Z'
-- sets over nothing
SELECT count(DISTINCT url) AS c, approx_count_distinct(url) AS a, approx_quantile(d, 0.5) AS q FROM source WHERE url = '/a' AND user_id = 'Z'
-- lists of one record put together
SELECT array_to_string(list_transform(string_split(url, '/'), lambda x: upper(x)), '-') AS parts, max(list_median([small, 2, 3])) AS middle, count(*) AS n
FROM source GROUP BY parts
-- arrows in parentheses, and lambdas
SELECT (doc->>'a') AS a, count(*) FILTER (WHERE ok AND (doc->>'a') = 'x') AS n, count_if(doc->>'b' IS NOT NULL) AS b,
  sum(len(list_filter([small, 2], lambda e: e > 1 AND e < 9))) AS l
FROM source WHERE doc->>'a' = 'x' OR NOT (doc->>'a') = 'z' GROUP BY 1
-- group by without an aggregate
SELECT url FROM source GROUP BY url
-- distinct
SELECT DISTINCT url, count(*) AS n FROM source GROUP BY url
-- limit
SELECT url, count(*) AS n FROM source GROUP BY url ORDER BY url DESC NULLS FIRST LIMIT 1000
-- having
SELECT url, count(*) AS n FROM source GROUP BY url HAVING count(*) > 10
-- having over aggregates that are not selected
SELECT url, max(duration_ms) AS m FROM source GROUP BY url HAVING (count(*) > 10 OR m < 5) AND sum(duration_ms) - m >= 7 * count(*)
-- having that PostgreSQL may compute otherwise
SELECT url, max(duration_ms) AS m FROM source GROUP BY url HAVING max(duration_ms)::VARCHAR > '5'
-- arithmetic over aggregates
SELECT url, count(*) AS n, sum(duration_ms) / count(*) AS mean FROM source GROUP BY url
-- cast over an aggregate
SELECT url, sum(small)::BIGINT AS s FROM source GROUP BY url
-- coalesce over an aggregate
SELECT url, coalesce(sum(duration_ms), 0) AS s FROM source GROUP BY url
-- a constant that is no key
SELECT url, 'x' AS kind, count(*) AS n FROM source GROUP BY url
-- an expression of a key
SELECT url, upper(url) AS big, count(*) AS n FROM source GROUP BY url
-- group expression not selected
SELECT count(*) AS n FROM source GROUP BY url
-- group expression not selected, beside one that is
SELECT url, count(*) AS n FROM source GROUP BY url, date_trunc('hour', ts)
-- select distinct
SELECT DISTINCT url FROM source
-- min distinct
SELECT url, min(DISTINCT duration_ms) AS s FROM source GROUP BY url
-- bool_and distinct
SELECT url, bool_and(DISTINCT ok) AS b FROM source GROUP BY url
-- standard error
SELECT url, sem(duration_ms) AS s FROM source GROUP BY url
-- totals of different values
SELECT url, sum(DISTINCT small % 3) AS s, avg(DISTINCT CASE WHEN ok THEN 1.5 ELSE 2.25 END) AS a, count(DISTINCT small % 3) AS n, sum(DISTINCT small % 3) / count(*) AS r, regr_avgx(price, small % 10) AS mean, sem(small % 10) AS e FROM source GROUP BY url
-- medians
SELECT ok, median(small % 3) AS a, median(CAST(small % 3 AS DECIMAL(9,2))) AS p, median(CAST(small % 3 AS float8)) AS d, median(DATE '2020-01-01' + small % 3) AS day, median(CAST(small % 3 AS VARCHAR)) AS t, median(DISTINCT small % 3) AS u FROM source GROUP BY ok
-- quantiles of the values themselves
SELECT quantile_cont(small % 3, 0.3) AS a, quantile(small % 3, 0.9) AS c, quantile_cont(CAST(small % 3 AS DECIMAL(9,3)), [0.1, 0.5, 0.77]) AS p, percentile_cont(0.2) WITHIN GROUP (ORDER BY small % 3 DESC) AS w, mad(small % 3) AS m, entropy(small % 3) AS e FROM source
-- lists
SELECT url, list(small) FILTER (WHERE small < 3) AS l, string_agg(user_id, '; ' ORDER BY small DESC, user_id) AS s, array_agg(DISTINCT small % 3 ORDER BY small % 3 DESC) AS d, string_agg(DISTINCT CAST(small % 3 AS VARCHAR), '' ORDER BY CAST(small % 3 AS VARCHAR)) AS t FROM source GROUP BY url
-- the greatest few
SELECT url, max(small, 3) AS a, min(user_id, 2) AS b, list([small]) AS n FROM source GROUP BY url
-- values of several parts
SELECT url, max([small, 1]) AS a, min({'a': small, 'b': user_id}) AS b, max({'a': price, 'c': {'d': ok}}) AS c FROM source GROUP BY url
-- values in an order of their own
SELECT url, first(user_id ORDER BY small, user_id) AS f, last(user_id ORDER BY small, user_id) AS l, any_value(price ORDER BY small DESC, price) AS a FROM source GROUP BY url
-- sums around means
SELECT ok, regr_count(small, price) AS n, regr_sxx(small % 10, price % 10) AS xx, regr_syy(small % 10, price % 10) AS yy, regr_sxy(small % 10, price % 10) AS xy, sum(DISTINCT CAST(small % 3 AS float8) / 4) AS d, stddev(DISTINCT small % 3) AS s FROM source GROUP BY ok
-- grouping sets
SELECT url, small % 3 AS m, grouping(url) AS g, count(*) AS n, sum(duration_ms % 10) AS s FROM source GROUP BY CUBE (url, m)
-- third and fourth powers
SELECT ok, kurtosis(small % 9) AS a, skewness(CAST(small % 9 AS DECIMAL(9,2))) AS b FROM source GROUP BY ok
-- the latest row of a key
SELECT DISTINCT ON (url) url, small, price FROM source ORDER BY url, small DESC, user_id
-- unnest in FROM
SELECT t.i AS i, s.url, count(*) AS n FROM source s, unnest([s.small % 3, 2, NULL]) AS t(i) WHERE t.i IS NOT NULL GROUP BY ALL
-- total of BIGNUM and a key of type ENUM
SELECT CASE WHEN ok THEN 'a' ELSE 'b' END::ENUM('a', 'b') AS e, [small % 3, 1]::SMALLINT[2] AS a, sum(duration_ms::BIGNUM) AS s, count(*) AS n FROM source GROUP BY ALL
