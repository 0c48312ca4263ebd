-- 1
SELECT quantile_cont(small, 0.3) AS a, quantile_disc(small, 0.3) AS b, quantile(small, 0.9) AS c, quantile_cont(price, [0.1, 0.5, 0.77]) AS p, quantile_disc(day, [0.25, 0.75]) AS q, quantile_cont(small, -0.25) AS n, quantile_disc(url, 0.99) AS u FROM source
-- 2
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY small DESC) AS a, percentile_disc(0.2) WITHIN GROUP (ORDER BY price) AS b, percentile_disc(0.2) WITHIN GROUP (ORDER BY price DESC) AS c, percentile_cont(0.2) WITHIN GROUP (ORDER BY duration_ms DESC) AS d FROM source
-- 3
SELECT ok, entropy(small) AS e, mad(small) AS m, mad(price) AS mp, mad(d) AS md FROM source GROUP BY ok
-- 4
SELECT sum(DISTINCT d) AS a, avg(DISTINCT d) AS b, stddev(DISTINCT small) AS c, var_pop(DISTINCT price) AS v FROM source WHERE abs(d) < 1e10
-- 5
SELECT string_agg(DISTINCT url, ', ' ORDER BY url DESC) AS s, list(DISTINCT small ORDER BY small) AS l, array_agg(DISTINCT url ORDER BY url DESC NULLS FIRST) AS a, median(DISTINCT small) AS m, quantile_disc(DISTINCT small, 0.7) AS q FROM source
-- 6
SELECT ok, list(small) FILTER (WHERE small > 3) AS l, string_agg(url, '; ' ORDER BY small, user_id DESC) FILTER (WHERE ok) AS s, string_agg(small, '') AS ss FROM source GROUP BY ok
-- 7
SELECT max(small, 3) AS a, min(url, 2) AS b, max(price, 100) AS c, arg_max(url, duration_ms, 3) AS d, arg_min(price, duration_ms, 2) AS e FROM source
-- 8
SELECT ok, first(url ORDER BY small) AS a, last(url ORDER BY small, duration_ms) AS b, any_value(url ORDER BY small DESC, duration_ms) AS c, first(price ORDER BY duration_ms DESC NULLS FIRST) AS d FROM source GROUP BY ok
-- 9
SELECT max([url, 'x']) AS a, min([url]) AS b, arg_min([price], [duration_ms]) AS c FROM source
-- 10
SELECT list([small]) AS a, list({'x': small}) AS b, list(doc) AS c FROM source
-- 11
SELECT round(median(small), 2) + 1 AS a, list(url) AS l, max(small) - min(small) AS m, quantile_cont(small, 0.9) - median(small) AS q FROM source
-- 12
SELECT ok, median(small) AS m FROM source GROUP BY ok HAVING median(small) > 3 ORDER BY m DESC LIMIT 5
-- 13
SELECT quantile_cont(small, 0.3) AS a, quantile_cont(price, [0.1, 0.5, 0.77]) AS p, quantile_cont(duration_ms, 0.123) AS c FROM source
-- 14
SELECT ok, mad(price) AS mp FROM source GROUP BY ok
-- 15
SELECT list(DISTINCT small ORDER BY small) AS l, array_agg(DISTINCT url ORDER BY url DESC NULLS FIRST) AS a FROM source
-- 16
SELECT list(DISTINCT small ORDER BY small DESC) AS l, list_sort(list(url)) AS x FROM source WHERE ok
-- 17
SELECT max([small, 1]) AS a, min({'a': small, 'b': url}) AS b, max({'a': price, 'c': {'d': url}}) AS c, first([small]) AS d, last({'x': small}) AS e, arg_max({'x': url}, duration_ms) AS f FROM source
-- 18
SELECT min(local - TIMESTAMP '2020-01-01') AS i, max(doc) AS j FROM source
-- 19
SELECT ok, regr_count(small, duration_ms) AS n, regr_sxx(small, duration_ms) AS a, regr_syy(small, duration_ms) AS b, regr_sxy(small, duration_ms) AS c, regr_intercept(small, duration_ms) AS d FROM source GROUP BY ok
-- 20
SELECT weighted_avg(small, duration_ms) AS w FROM source
-- 21
SELECT geomean(abs(small) + 1) AS w FROM source
-- 22
SELECT listagg(url, '-') AS l, group_concat(url) AS g, string_agg(user_id ORDER BY user_id) AS s FROM source
-- 23
SELECT max({'a': small}, 2) AS a, min([url], 3) AS b FROM source
-- 24
SELECT url, small FROM source QUALIFY row_number() OVER (PARTITION BY url ORDER BY duration_ms DESC) = 1
-- 25
SELECT url, small, user_id FROM (SELECT *, row_number() OVER (PARTITION BY url ORDER BY duration_ms DESC) AS rn FROM source) WHERE rn = 1
-- 26
SELECT * FROM (SELECT url, small, duration_ms, row_number() OVER (PARTITION BY url ORDER BY duration_ms) AS rn FROM source WHERE ok) t WHERE t.rn <= 1
-- 27
SELECT DISTINCT ON (url) url, small, price * 2 AS p FROM source ORDER BY url, duration_ms DESC
-- 28
SELECT DISTINCT ON (url, ok) url, small FROM source ORDER BY duration_ms
-- 29
SELECT url, ok, count(*) AS n, sum(small) AS s FROM source GROUP BY ROLLUP (url, ok)
-- 30
SELECT url, ok, grouping(url) AS g, grouping(url, ok) AS h, median(small) AS s FROM source GROUP BY CUBE (url, ok)
-- 31
SELECT url, small % 3 AS m, count(*) AS n FROM source GROUP BY GROUPING SETS ((url), (m), ())
-- 32
SELECT coalesce(url, 'all') AS u, count(*) AS n FROM source GROUP BY ROLLUP (url) HAVING grouping(url) = 0 OR count(*) > 2
-- 33
SELECT sum(small) AS n FROM source GROUP BY GROUPING SETS ((url, ok), (ok))
-- 34
SELECT ok, kurtosis(small) AS a, skewness(small) AS b, kurtosis_pop(price) AS c, skewness(duration_ms) AS d FROM source GROUP BY ok
-- 35
SELECT * FROM source WHERE ok
-- 36
SELECT url, small FROM source ORDER BY small DESC, url LIMIT 3 OFFSET 1
-- 37
SELECT url, small FROM source LIMIT 4
-- 38
SELECT url, i FROM source, unnest([small, 2]) AS t(i)
-- 39
SELECT t.i AS i, s.url, count(*) AS n FROM source s, unnest([s.small, 2, NULL]) AS t(i) WHERE t.i IS NOT NULL GROUP BY ALL
-- 40
SELECT i, count(*) AS n FROM source AS s LEFT JOIN unnest(CASE WHEN s.ok THEN [s.small] END) AS t(i) ON true GROUP BY i
-- 41
SELECT i, j, count(*) AS n FROM source s CROSS JOIN unnest([s.small, 1]) AS t(i) CROSS JOIN unnest([t.i, s.small]) AS u(j) GROUP BY i, j
-- 42
SELECT clock::TIMETZ AS tz, '0101'::BIT AS bits FROM source WHERE ok
-- 43
SELECT ok, median(small) AS m, median(price) AS p, median(url) AS u, median(local) AS l, median(f) AS f FROM source GROUP BY ok
-- 44
SELECT [small, 1]::SMALLINT[2] AS a, count(*) AS n, any_value('a'::ENUM('a', 'b')) AS e, max([small]::SMALLINT[1]) AS m FROM source GROUP BY a
