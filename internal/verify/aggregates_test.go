package verify

import (
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const everyAggregate = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ts: timestamptz, ms: bigint, score: double precision}
query: |
  SELECT url, first(ms) AS oldest, last(ms) AS newest, any_value(score) AS some, arg_max(ts, ms) AS worst, arg_min_null(score, ms) AS best, stddev(ms) AS spread,
         covar_pop(score, ms) AS together, corr(ms, score) AS r, bool_or(ms > 5) AS slow, bit_xor(ms) AS bits, count_if(ms > 2) AS over, count(DISTINCT ts) AS times,
         approx_count_distinct(ts) AS about, approx_quantile(score, 0.9) AS p90, histogram(ms) AS by_ms
  FROM source GROUP BY url
distinct_max: 2
serve: {view: public.hits}
`

func TestEveryAggregateIsRecomputedFromTheLog(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), everyAggregate)
	w.process(map[int32][]string{
		0: {hit("/a", ten, 1), hit("/b", ten, 4), hit("/a", eleven, 30), hit("/a", twelve, 30), hit("/b", twelve, 4)},
		1: {`{}`, hit("/c", ten, 10), `{"url":"/c","ts":"` + ten + `"}`, hit("/c", ten, 7)},
	})
	wantEqual(t, w.verify(Options{}), 4, 9)
	w.exec(`UPDATE public.hits__v1 SET newest = 31, p90__buckets = '{"300e-1": 3}' WHERE url = '/a'`)
	w.exec(`UPDATE public.hits__v1 SET times__set = '{2026-01-01 10:05Z}' WHERE url = '/b'`)
	w.exec(`UPDATE public.hits__v1 SET by_ms__counts = '{"10": 1, "7": 2}' WHERE url IS NULL`)
	w.exec(`UPDATE public.hits__v1 SET spread__xx = spread__xx + 1 WHERE url = '/c'`)
	r := w.verify(Options{})
	if r.Equal || r.Differences != 4 {
		t.Errorf("want 4 differences, got %d: %v", r.Differences, r.Examples)
	}
}

const aboveAggregates = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ts: timestamptz, ms: bigint, score: double precision}
query: |
  SELECT sum(ms) / count(*) AS mean, max(ts) - min(ts) AS span, round(avg(score), 1) AS about, coalesce(sum(ms), 0) * 2 AS twice
  FROM source GROUP BY url HAVING count(*) > 1 ORDER BY mean DESC LIMIT 1
serve: {view: public.hits}
`

// TestWhatIsComputedFromAggregatesIsVerified: also rows that HAVING and LIMIT hide from readers, by keys that they do not
// see.
func TestWhatIsComputedFromAggregatesIsVerified(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), aboveAggregates)
	w.process(map[int32][]string{
		0: {hit("/a", ten, 1), hit("/b", ten, 4), hit("/a", eleven, 30), hit("/a", twelve, 30), hit("/b", twelve, 4)},
		1: {`{}`, hit("/c", ten, 10)},
	})
	wantEqual(t, w.verify(Options{}), 4, 7)
	w.exec(`UPDATE public.hits__v1 SET "_sum_2__s" = 11 WHERE _url = '/c'`)
	if r := w.verify(Options{}); r.Equal || r.Differences != 1 {
		t.Errorf("want 1 difference, got %d: %v", r.Differences, r.Examples)
	}
}

const everyOtherType = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ms: bigint, doc: jsonb}
query: |
  SELECT url, doc, {n: ms, half: ms / 2.0, t: url} AS parts, [{x: ms}, {x: 1}] AS list, to_days(CAST(ms AS INTEGER)) + to_microseconds(ms) AS wait
  FROM source
serve: {view: public.hits}
`

// TestEveryTypeThatCheckTakesIsCompared: also those that both engines write in their own ways.
func TestEveryTypeThatCheckTakesIsCompared(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), everyOtherType)
	w.process(map[int32][]string{0: {
		`{"url":"/a","ms":5,"doc":{"b":[1,2.50,null,{}],"a":{"x":"\u00e9\n","":true}}}`, `{"url":"/b","ms":40000,"doc":"text"}`,
		`{"url":"/c","ms":-3,"doc":[1e2, -0.5]}`, `{"url":"/d"}`,
	}})
	wantEqual(t, w.verify(Options{}), 4, 4)
	w.exec(`UPDATE public.hits__v1 SET doc = '[100, 0.5]' WHERE url = '/c'`)
	w.exec(`UPDATE public.hits__v1 SET wait = wait + interval '1 microsecond' WHERE url = '/b'`)
	w.exec(`UPDATE public.hits__v1 SET parts = parts || '{"n": 6}' WHERE url = '/a'`)
	if r := w.verify(Options{}); r.Equal || r.Differences != 3 {
		t.Errorf("want 3 differences, got %d: %v", r.Differences, r.Examples)
	}
}
