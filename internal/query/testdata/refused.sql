-- empty query

-- only a comment
/* later */
-- syntax error
SELECT url, count(* FROM source GROUP BY url
-- two statements
SELECT url, count(*) AS n FROM source GROUP BY url; SELECT 1
-- not a SELECT
INSERT INTO t SELECT url FROM source
-- PIVOT
PIVOT source ON url USING sum(duration_ms)
-- VALUES
VALUES (1)
-- union
SELECT url, count(*) AS n FROM source GROUP BY url UNION ALL SELECT user_id, count(*) AS n FROM source GROUP BY user_id
-- recursive
WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT i, count(*) AS n FROM r GROUP BY i
-- parameter
SELECT url, count(*) AS n FROM source WHERE duration_ms > $1 GROUP BY url
-- question mark
SELECT url, count(*) AS n FROM source WHERE duration_ms > ? GROUP BY url
-- a row with a window
SELECT url, sum(duration_ms) OVER () AS u FROM source WHERE duration_ms > 5
-- no FROM
SELECT count(*) AS n
-- unknown relation
SELECT url, count(*) AS n FROM pageviews GROUP BY url
-- file
SELECT url, count(*) AS n FROM 'x.parquet' GROUP BY url
-- file function
SELECT url, count(*) AS n FROM read_csv('x.csv') GROUP BY url
-- table function range
SELECT range AS r, count(*) AS n FROM range(10) GROUP BY r
-- system table
SELECT name, count(*) AS n FROM duckdb_settings() GROUP BY name
-- schema
SELECT url, count(*) AS n FROM main.source GROUP BY url
-- information schema
SELECT table_name, count(*) AS n FROM information_schema.tables GROUP BY table_name
-- self join
SELECT a.url AS url, count(*) AS n FROM source a JOIN source b ON a.url = b.url GROUP BY a.url
-- cross join
SELECT url, count(*) AS n FROM source, (SELECT 1 AS x) GROUP BY url
-- unnest at the top
SELECT unnest(string_split(url, '/')) AS t, count(*) AS n FROM source GROUP BY ALL
-- sample of the table
SELECT url, count(*) AS n FROM source TABLESAMPLE 10% GROUP BY url
-- sample of the query
SELECT url, count(*) AS n FROM source GROUP BY url USING SAMPLE 10
-- window
SELECT url, row_number() OVER (ORDER BY ts) AS n FROM source
-- window over an aggregate
SELECT url, count(*) AS n, sum(count(*)) OVER () AS total FROM source GROUP BY url
-- window in a filter
SELECT url, count(*) AS n FROM (SELECT url, lag(ts) OVER (ORDER BY ts) AS prev FROM source) WHERE prev IS NULL GROUP BY url
-- distinct in a subquery
SELECT url, count(*) AS n FROM (SELECT DISTINCT url, user_id FROM source) GROUP BY url
-- distinct on
SELECT DISTINCT ON (url) url, count(*) AS n FROM source GROUP BY url
-- count distinct
SELECT url, count(DISTINCT user_id) AS users FROM source GROUP BY url
-- sum distinct
SELECT url, sum(DISTINCT duration_ms) AS s FROM source GROUP BY url
-- limit percent
SELECT url, count(*) AS n FROM source GROUP BY url LIMIT 10%
-- limit in a subquery
SELECT url, count(*) AS n FROM (SELECT * FROM source LIMIT 10) GROUP BY url
-- qualify
SELECT url, count(*) AS n FROM source GROUP BY url QUALIFY row_number() OVER () = 1
-- grouping function
SELECT url, grouping(url) AS g, count(*) AS n FROM source GROUP BY url
-- median
SELECT url, median(duration_ms) AS m FROM source GROUP BY url
-- quantile
SELECT url, quantile_cont(duration_ms, 0.9) AS p90 FROM source GROUP BY url
-- mode
SELECT url, mode(user_id) AS m FROM source GROUP BY url
-- list
SELECT url, list(user_id) AS l FROM source GROUP BY url
-- the greatest of no number
SELECT url, max(small, 0) AS m, arg_max(user_id, ts, small) AS u FROM source GROUP BY url
-- min in an order
SELECT url, arg_max(user_id, small ORDER BY ts) AS u FROM source GROUP BY url
-- list in order
SELECT url, list(user_id ORDER BY ts) AS l FROM source GROUP BY url
-- string_agg
SELECT url, string_agg(user_id, ',') AS l FROM source GROUP BY url
-- bits of a wide number
SELECT url, bit_xor(duration_ms::HUGEINT) AS s FROM source GROUP BY url
-- quantiles of several fractions
SELECT url, approx_quantile(d, [0.5, 0.9]) AS u FROM source GROUP BY url
-- a quantile of no fraction
SELECT url, approx_quantile(d, 90) AS u FROM source GROUP BY url
-- a quantile by a column
SELECT url, approx_quantile(d, small) AS u FROM source GROUP BY url
-- a quantile of times
SELECT url, approx_quantile(ts, 0.5) AS u FROM source GROUP BY url
-- a histogram of any number of values
SELECT url, histogram(d) AS h FROM source GROUP BY url
-- product
SELECT url, product(duration_ms) AS p FROM source GROUP BY url
-- fsum
SELECT url, fsum(d) AS s FROM source GROUP BY url
-- nested aggregates
SELECT url, sum(count(*)) AS s FROM source GROUP BY url
-- aggregate in WHERE
SELECT url, count(*) AS n FROM source WHERE count(*) > 5 GROUP BY url
-- aggregate in a subquery
SELECT n, count(*) AS urls FROM (SELECT url, count(*) AS n FROM source GROUP BY url) GROUP BY n
-- aggregate in a CTE
WITH t AS (SELECT max(ts) AS m FROM source) SELECT m, count(*) AS n FROM t GROUP BY m
-- a column that is not grouped
SELECT url, user_id, count(*) AS n FROM source GROUP BY url
-- group by position out of range
SELECT url, count(*) AS n FROM source GROUP BY 3
-- group by the position of an aggregate
SELECT url, count(*) AS n FROM source GROUP BY 2
-- group by a text constant
SELECT url, count(*) AS n FROM source GROUP BY url, 'x'
-- alias trap
SELECT lower(url) AS url, count(*) AS n FROM source GROUP BY url
-- alias trap on a meta column
SELECT _partition // 2 AS ts, count(*) AS n FROM source GROUP BY ts
-- alias trap through a subquery
SELECT lower(u) AS u, count(*) AS n FROM (SELECT url AS u FROM source) GROUP BY u
-- duplicate names
SELECT url, count(*) AS n, sum(duration_ms) AS N FROM source GROUP BY url
-- name with an underscore in front
SELECT url AS _url, count(*) AS n FROM source GROUP BY 1
-- name of a system column
SELECT url AS xmin, count(*) AS n FROM source GROUP BY 1
-- long name
SELECT url, count(*) AS "ééééééééééééééééééééééééééééééééé" FROM source GROUP BY url
-- star beside an aggregate
SELECT *, count(*) AS n FROM source GROUP BY ALL
-- columns()
SELECT url, max(COLUMNS('d.*')) FROM source GROUP BY url
-- current_date
SELECT url, count(*) AS n FROM source WHERE ts > current_date GROUP BY url
-- current_date as a key
SELECT current_date AS today, count(*) AS n FROM source GROUP BY today
-- now
SELECT url, count(*) FILTER (WHERE ts > now() - INTERVAL 1 DAY) AS n FROM source GROUP BY url
-- today
SELECT url, count(*) AS n FROM source WHERE ts::DATE = today() GROUP BY url
-- age of one argument
SELECT url, max(epoch(age(ts::TIMESTAMP))) AS a FROM source GROUP BY url
-- random
SELECT url, count(*) AS n FROM source WHERE random() < 0.1 GROUP BY url
-- random in a lambda
SELECT url, sum(list_sum(list_transform([1, 2], lambda x: x + random()))) AS s FROM source GROUP BY url
-- uuid
SELECT url, max(uuid()) AS u FROM source GROUP BY url
-- getvariable
SELECT getvariable('tenant') AS tenant, count(*) AS n FROM source GROUP BY 1
-- current_setting
SELECT url, count(*) AS n FROM source WHERE current_setting('TimeZone') = 'UTC' GROUP BY url
-- version
SELECT version() AS v, count(*) AS n FROM source GROUP BY v
-- hash
SELECT hash(url) % 10 AS bucket, count(*) AS n FROM source GROUP BY bucket
-- current_user
SELECT current_user AS u, count(*) AS n FROM source GROUP BY u
-- nextval
SELECT url, max(nextval('s')) AS n FROM source GROUP BY url
-- macro over a volatile function
SELECT url, count(*) AS n FROM source WHERE ts > ago(INTERVAL 1 DAY) GROUP BY url
-- scalar subquery
SELECT url, count(*) AS n FROM source WHERE ts > (SELECT max(ts) FROM source) GROUP BY url
-- exists
SELECT url, count(*) AS n FROM source s WHERE EXISTS (SELECT 1 FROM source t WHERE t.url = s.url) GROUP BY url
-- in a subquery
SELECT url, count(*) AS n FROM source WHERE url IN (SELECT url FROM source) GROUP BY url
-- collation in a key
SELECT url COLLATE NOCASE AS u, count(*) AS n FROM source GROUP BY u
-- collation in a filter
SELECT url, count(*) AS n FROM source WHERE user_id COLLATE NOCASE = 'a' GROUP BY url
-- collation function
SELECT icu_sort_key(url, 'de') AS u, count(*) AS n FROM source GROUP BY u
-- positional reference
SELECT #1 AS u, count(*) AS n FROM source GROUP BY u
-- unknown column
SELECT url, sum(duration) AS s FROM source GROUP BY url
-- unknown function
SELECT url, sum(lenght(url)) AS s FROM source GROUP BY url
-- wrong type
SELECT url, sum(user_id) AS s FROM source GROUP BY url
-- key of type JSON
SELECT doc, count(*) AS n FROM source GROUP BY doc
-- key of type STRUCT
SELECT {'a': url} AS s, count(*) AS n FROM source GROUP BY s
-- key of type INTERVAL
SELECT to_days(duration_ms::INT) AS i, count(*) AS n FROM source GROUP BY i
-- key of type TIMESTAMP_NS
SELECT ts::TIMESTAMP::TIMESTAMP_NS AS t, count(*) AS n FROM source GROUP BY t
-- max of TIMETZ
SELECT url, max(ts::TIMETZ) AS m FROM source GROUP BY url
-- avg of a time
SELECT url, avg(ts) AS m FROM source GROUP BY url
-- several at once
SELECT url, median(duration_ms) AS m, list(user_id) AS l, now() AS t FROM source GROUP BY url ORDER BY m LIMIT 3
-- a whole row
SELECT md5(source::VARCHAR) AS k, count(*) AS n FROM source GROUP BY k
-- a whole row through an alias
WITH t AS (SELECT md5(s::VARCHAR) AS k FROM source AS s) SELECT k, count(*) AS n FROM t GROUP BY k
-- columns qualified by a schema
SELECT main.source.url AS u, count(*) AS n FROM source GROUP BY u
-- rowid
SELECT url, count(*) AS n FROM source WHERE rowid % 2 = 0 GROUP BY url
-- group by a fraction
SELECT url, count(*) AS n FROM source GROUP BY url, 1.5
-- describe
DESCRIBE source
-- unpivot
UNPIVOT source ON small, f INTO NAME a VALUE b
-- a CTE that reads nothing
WITH a AS (SELECT 1 AS x) SELECT count(*) AS n FROM a
-- an unused CTE that aggregates
WITH a AS (SELECT max(ts) FROM source) SELECT count(*) AS n FROM source
-- a CTE over itself
WITH a AS (SELECT * FROM a) SELECT count(*) AS n FROM a
-- asof join
SELECT a.url AS u, count(*) AS n FROM source a ASOF JOIN source b ON a.ts >= b.ts GROUP BY 1
-- any of a subquery
SELECT url, count(*) AS n FROM source WHERE url = ANY (SELECT 'a') GROUP BY url
-- TRY around a volatile function
SELECT url, max(TRY(random())) AS r FROM source GROUP BY url
-- a function with its schema
SELECT url, max(pg_catalog.version()) AS v FROM source GROUP BY url
-- key of a tuple
SELECT (url, ok) AS t, count(*) AS n FROM source GROUP BY t
-- a table at another time
SELECT url, count(*) AS n FROM source AT (VERSION => 1) GROUP BY url
-- random in a list that is put together
SELECT url, array_to_string(list_transform(string_split(user_id, ' '), lambda x: x || CAST(random() AS VARCHAR)), ',') AS m FROM source
-- a row with now
SELECT url, now() AS seen FROM source
-- a row with a position in the input
SELECT url, row_number() OVER () AS n FROM source
-- rows of two queries
SELECT url FROM source UNION ALL SELECT user_id FROM source
-- rows of a join
SELECT a.url AS url FROM source a JOIN source b ON a.id = b.id
-- a row with a subquery
SELECT url, (SELECT max(ts) FROM source) AS newest FROM source
-- a row with a union
SELECT url, union_value(a := small) AS u FROM source
-- a row with a name of ours
SELECT url AS _topic FROM source
-- a row of a meta column that only upserts have
SELECT url, _tombstone AS gone FROM source
-- a row with an unnest beside others
SELECT url, unnest([1, 2]) AS i, generate_series(1, 3) AS s FROM source QUALIFY i > 1
-- an unnest of a STRUCT
SELECT url, unnest({x: 1, y: small}) AS i FROM source
-- a macro with an unnest in an expression
SELECT url, upper(regexp_split_to_table(user_id, ' ')) AS w FROM source
-- a macro with an unnest above an aggregate
SELECT generate_subscripts([1, 2], 1) AS i, count(*) AS n FROM source GROUP BY ALL
-- unlist in an expression
SELECT url, upper(unlist([user_id])) AS w FROM source
-- an unnest of a STRUCT of one field
SELECT unnest({x: url}) AS i FROM source
-- an unnest of STRUCTs to their fields
SELECT url, unnest([{x: 1, y: small}], recursive := true) AS i FROM source
-- an arrow behind OR
SELECT url FROM source WHERE small IS NULL OR doc->>'op' = 'd'
-- an arrow behind NOT
SELECT url FROM source WHERE NOT doc->>'op' = 'd'
-- an arrow behind AND
SELECT url, count(*) FILTER (WHERE ok AND doc->>'name' IS NOT NULL) AS n FROM source GROUP BY url
-- an arrow behind ||
SELECT 'x' || doc->>'a' AS x FROM source
-- an arrow on both sides
SELECT url FROM source WHERE doc->>'a' = doc->>'b'
-- a plain arrow before =
SELECT url FROM source WHERE doc->'a' = 'x'
-- a plain arrow in CASE
SELECT CASE WHEN ok AND doc->'a' IS NULL THEN 1 END AS x FROM source
-- every
SELECT url, every(ok) AS e FROM source GROUP BY url
-- a window of Flink
SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE source, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start
-- a window function of Flink
SELECT tumble_start(ts, INTERVAL 1 HOUR) AS w, count(*) AS n FROM source GROUP BY 1
-- a window of ksqlDB
SELECT url, count(*) AS n FROM source WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY url EMIT CHANGES
-- json_group_array
SELECT url, json_group_array(small) AS j FROM source GROUP BY url
-- having over what PostgreSQL computes otherwise
SELECT url, max(d) AS m FROM source GROUP BY url HAVING max(d)::VARCHAR > '5'
-- arithmetic that PostgreSQL computes otherwise
SELECT url, upper(max(user_id)) AS u, max(duration_ms) // 1.5 AS q, pow(count(*), 0.5) AS p FROM source GROUP BY url
-- an operation that can fail below coalesce
SELECT url, coalesce(sqrt(min(small)), 0) AS root FROM source GROUP BY url
-- a column that is no key, in arithmetic
SELECT url, small + count(*) AS n FROM source GROUP BY url
-- distinct over a part of the keys
SELECT DISTINCT count(*) AS n FROM source GROUP BY url
-- order by a number that is no column
SELECT url, count(*) AS n FROM source GROUP BY url ORDER BY 3 LIMIT 5
-- the latest rows that are then aggregated
SELECT url, count(*) AS n FROM (SELECT *, row_number() OVER (PARTITION BY url ORDER BY ts DESC) AS rn FROM source) WHERE rn = 1 GROUP BY url
-- the latest row of a record with several rows
SELECT url, w FROM (SELECT url, ts, unnest([1, 2]) AS w FROM source) QUALIFY row_number() OVER (PARTITION BY url ORDER BY ts) = 1
-- the second row of a key
SELECT url, small, ts FROM source QUALIFY row_number() OVER (PARTITION BY url ORDER BY ts DESC) = 2
-- the same grouping set twice
SELECT url, count(*) AS n FROM source GROUP BY GROUPING SETS ((url), (url))
-- rows by a value that is not selected
SELECT url FROM source ORDER BY length(user_id) LIMIT 3
-- skewness of doubles
SELECT skewness(d) AS s FROM source
-- unnest in FROM that takes a name
SELECT url, count(*) AS n FROM source, unnest([1, 2]) AS t(small) GROUP BY url
-- a function of ksqlDB
SELECT url, latest_by_offset(user_id) AS u FROM source GROUP BY url
-- a function of ClickHouse
SELECT url, uniqExact(user_id) AS u FROM source GROUP BY url
