package trial_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/trial"
)

func passes(t *testing.T, results []trial.Result) {
	t.Helper()
	for _, r := range results {
		if !r.OK {
			t.Errorf("%s: %+v", r.Engine, r)
		}
	}
}

func TestTheTestsOfTheExamplesPass(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	tests := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\ntests:\n") {
			continue
		}
		both(t, string(text), func(t *testing.T, results []trial.Result) {
			tests += len(results)
			passes(t, results)
		})
	}
	if tests < 6 {
		t.Errorf("only %d tests ran", tests)
	}
}

const upserts = `
job: accounts
source:
  topics: [a, b]
  columns: {id: text, n: bigint, ts: timestamptz}
query: |
  SELECT coalesce(id, decode(_key)) AS id, n, ts, _topic AS topic, _partition AS part, decode(_headers[1].value) AS tenant FROM source WHERE n IS NULL OR n < 100
serve: {view: public.accounts, key: [id]}
tests:
  - name: keys, tombstones, times, topics and headers of given records
    given:
      - {value: '{"id":"x","n":1}', timestamp: "2026-01-02T00:00:00Z", topic: b, partition: 3, headers: {tenant: t1}}
      - {value: '{"id":"x","n":2}', timestamp: "2026-01-01T00:00:00Z"}
      - {value: '{"id":"y","n":3}', timestamp: 2026-01-01T00:00:00Z}
      - {key: y, timestamp: "2026-01-01T00:00:00.001Z"}
      - {value: '{"id":"z","n":4}'}
      - {key: z, timestamp: "2026-01-01T00:00:00Z"}
      - {value: '{"n":5}', key: ""}
      - '{"id":"w","n":6}'
      - '{"id":"w","n":700}'
      - '{"n":8}'
      - {timestamp: "2026-01-01T00:00:00Z"}
    expect:
      - {id: x, n: 1, topic: b, part: 3, tenant: t1}
      - {id: "", n: 5, topic: a, part: 0, tenant: null}
      - {id: w, n: 6}
`

func TestGivenRecordsOfAnUpsertHaveAllThatRecordsHave(t *testing.T) {
	both(t, upserts, func(t *testing.T, results []trial.Result) {
		passes(t, results)
		var letters []string
		for _, l := range results[0].DeadLetters {
			letters = append(letters, l.Reason)
		}
		if diff := cmp.Diff([]string{"null_key", "null_key"}, letters); diff != "" || results[0].DeadLetters[0].Record != 10 {
			t.Errorf("%s%+v", diff, results[0].DeadLetters)
		}
	})
	ordered := strings.NewReplacer("key: [id]}", "key: [id], order_by: n}", "{id: x, n: 1, topic: b, part: 3, tenant: t1}", "{id: x, n: 2, topic: a}").Replace(upserts)
	ordered, _, _ = strings.Cut(ordered, "      - {value: '{\"id\":\"y\"") // a tombstone has no n
	both(t, ordered+"    expect: [{id: x, n: 2, topic: a}]\n", func(t *testing.T, results []trial.Result) { passes(t, results) })
}

func TestAppendedRowsOfATestAreEachExpected(t *testing.T) {
	const text = `
job: hits
source: {topics: [hits], columns: {url: text, n: bigint, ts: timestamptz}}
query: SELECT url, unnest([n, n]) AS n, ts FROM source WHERE n > 0
serve: {view: public.hits, keep: 1h, columns: {twice: n * 2}}
tests:
  - name: rows
    given: ['{"url":"/a","n":1,"ts":"2020-01-01T00:00:00Z"}', '{"url":"/b","n":0}', '{"url":"/a","n":1,"ts":"2020-01-01T00:00:00Z"}']
    expect: [{url: /a, n: 1}, {url: /a, n: 1}, {url: /a, n: 1, twice: 2}, {url: /a, n: 1, ts: "2020-01-01T00:00:00Z"}]
`
	both(t, text, func(t *testing.T, results []trial.Result) { passes(t, results) })
	both(t, strings.Replace(text, "[{url: /a, n: 1}, ", "[", 1), func(t *testing.T, results []trial.Result) {
		if r := results[0]; r.OK || len(r.Differences) != 1 || r.Differences[0].Kind != trial.Unexpected {
			t.Errorf("%+v", r)
		}
	})
}
