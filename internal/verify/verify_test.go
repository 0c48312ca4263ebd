package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

const (
	ten    = "2026-01-01T10:05:00Z"
	eleven = "2026-01-01T11:05:00Z"
	twelve = "2026-01-01T12:05:00Z"
)

// some values: 4 keys, one of them NULL, one NULL in both columns, one record that is no JSON.
func some() map[int32][]string {
	return map[int32][]string{
		0: {hit("/a", ten, 1), hit("/b", ten, 2), "no JSON", hit("/a", eleven, 3), `{"ts":"` + ten + `","ms":7}`},
		1: {hit("/a", ten, 10), `{}`, hit("/b", ten, 20)},
	}
}

func TestWhatWasReadEqualsTheLog(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, pageviews)
		w.process(some())
		// Records behind the position do not count yet.
		kafkatest.Produce(t, brokers, w.topic, 0, hit("/new", ten, 1))
		r := w.verify(Options{})
		wantEqual(t, r, 5, 8)
		if r.DeadLetters != 1 || len(r.Partitions) != 2 || r.Partitions[0].To != 5 || r.Version != "v1" || r.Job != "hits" {
			t.Errorf("report: %+v", r)
		}
	})
}

func TestDifferencesAreFoundKeyByKey(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, pageviews)
		w.process(some())
		w.exec(`UPDATE public.hits__v1 SET views = views + 1 WHERE url = '/b'`)
		w.exec(`DELETE FROM public.hits__v1 WHERE url = '/a' AND hour = '2026-01-01 11:00Z'`)
		r := w.verify(Options{})
		wantDifferences(t, r,
			"hour=2026-01-01 11:00:00+00 url=/a: served no row, expected best=3.5 mean=3.0 scores=3.5 total=3 views=1",
			"hour=2026-01-01 10:00:00+00 url=/b: served best=20.5 mean=11.0 scores=23.0 total=22 views=3, expected best=20.5 mean=11.0 scores=23.0 total=22 views=2")
	})
}

func TestAnExtraRowIsFoundAlsoOneOfNullKeysAndOneStoredTwice(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(map[int32][]string{0: {hit("/a", ten, 1)}})
	w.exec(`INSERT INTO public.hits__v1 SELECT * FROM public.hits__v1`)
	w.exec(`CREATE TABLE public.one AS SELECT * FROM public.hits__v1 LIMIT 1`)
	w.exec(`UPDATE public.one SET url = NULL, hour = NULL`)
	w.exec(`INSERT INTO public.hits__v1 SELECT * FROM public.one`)
	values := "best=1.5 mean=1.0 scores=1.5 total=1 views=1"
	wantDifferences(t, w.verify(Options{}),
		"hour=2026-01-01 10:00:00+00 url=/a: served "+values+", expected no row",
		"hour=NULL url=NULL: served "+values+", expected no row")
}

func TestANullKeyThatIsCorruptedIsFound(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(some())
	w.exec(`UPDATE public.hits__v1 SET views = 5 WHERE url IS NULL AND hour IS NULL`)
	wantDifferences(t, w.verify(Options{}),
		"hour=NULL url=NULL: served best=NULL mean=NULL scores=NULL total=NULL views=5, expected best=NULL mean=NULL scores=NULL total=NULL views=1")
}

func TestSumsOfDoublesMayDifferByTheirOrderOnly(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(map[int32][]string{0: {hit("/a", ten, 1), hit("/a", ten, 2)}})
	var column string
	for _, s := range w.query.Layout.States {
		if strings.Contains(s.Name, "scores") && s.Type == "double precision" {
			column = s.Name
		}
	}
	w.exec(`UPDATE public.hits__v1 SET "` + column + `" = "` + column + `" * (1 + 1e-12)`)
	wantEqual(t, w.verify(Options{}), 1, 2)
	w.exec(`UPDATE public.hits__v1 SET "` + column + `" = "` + column + `" * (1 + 1e-8)`)
	if r := w.verify(Options{}); r.Differences != 1 {
		t.Errorf("a sum that is off by 1e-8: %+v", r)
	}
	w.exec(`UPDATE public.hits__v1 SET "` + column + `" = 'Infinity'`)
	if r := w.verify(Options{}); r.Differences != 1 {
		t.Errorf("a sum that is infinite: %+v", r)
	}
}

func TestDeadLettersThatWereNotStoredOrShouldNotBeAreDifferences(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(some())
	w.exec(`UPDATE kappactl.dead_letter SET "offset" = 3`)
	wantDifferences(t, w.verify(Options{}),
		"record="+w.topic+"/0:2: served no row, expected dead_letter=yes",
		"record="+w.topic+"/0:3: served dead_letter=yes, expected no row")
}

func TestAcceptedGapsAreLeftOut(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(map[int32][]string{0: {hit("/a", ten, 1), hit("/a", ten, 2), hit("/a", ten, 4), hit("/a", ten, 8)}}, 1, 2)
	if r := w.verify(Options{}); r.Equal {
		t.Error("two records are missing and the report says equal")
	}
	w.exec(`INSERT INTO kappactl.accepted_gap (job, number, topic_id, topic, partition, from_offset, to_offset)
		SELECT job, number, topic_id, topic, partition, 1, 3 FROM kappactl.position WHERE partition = 0`)
	wantEqual(t, w.verify(Options{}), 1, 2)
	kafkatest.DeleteRecords(t, w.brokers, w.topic, 0, 2)
	wantRefusal(t, second(w.try(Options{})), job.ExitGap, w.topic+"/0 [0,2) is gone")
	w.exec(`UPDATE kappactl.accepted_gap SET counted = true`)
	wantRefusal(t, second(w.try(Options{})), job.ExitGap, "the log was truncated after [1,3) was counted")
}

func second(_ Report, err error) error { return err }

func TestRecordsBelowTheLogStartRefuseAndNameTheRange(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, pageviews)
		w.process(map[int32][]string{
			0: {hit("/a", ten, 1), hit("/b", ten, 2), hit("/a", eleven, 3), hit("/a", eleven, 4), hit("/a", twelve, 5)},
			1: {hit("/c", twelve, 6), `{"url":"/never"}`},
		})
		kafkatest.DeleteRecords(t, brokers, w.topic, 0, 3)
		wantRefusal(t, second(w.try(Options{})), job.ExitGap, w.topic+"/0 [0,3) is gone, the log starts at 3", "--from-log-start")
		r := w.verify(Options{FromLogStart: true})
		wantEqual(t, r, 2, 4)
		if r.Skipped != 4 || r.ComparedAfter != "2026-01-01 11:00:00+00" {
			t.Errorf("report: %+v, want 4 rows skipped up to 11:00", r)
		}
		w.exec(`UPDATE public.hits__v1 SET views = 9 WHERE url IN ('/b', '/c')`)
		if r := w.verify(Options{FromLogStart: true}); r.Differences != 1 || *r.Examples[0].Key["url"] != "/c" {
			t.Errorf("report: %+v, want the row of 12:00 alone", r)
		}
	})
}

func TestALogWithoutAWholeBucketIsNotCalledEqual(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(map[int32][]string{0: {hit("/a", ten, 1), hit("/a", ten, 2)}})
	kafkatest.DeleteRecords(t, w.brokers, w.topic, 0, 1)
	wantRefusal(t, second(w.try(Options{FromLogStart: true})), job.ExitGap, "no longer holds a complete bucket")
	kafkatest.DeleteRecords(t, w.brokers, w.topic, 0, 2)
	wantRefusal(t, second(w.try(Options{FromLogStart: true})), job.ExitGap, "no longer holds a complete bucket")
}

func TestATopicMadeAgainRefuses(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	w.process(map[int32][]string{0: {hit("/a", ten, 1)}})
	kafkatest.DeleteTopic(t, w.brokers, w.topic)
	wantRefusal(t, second(w.try(Options{FromLogStart: true})), job.ExitGap, "no longer exists")
	kafkatest.CreateTopic(t, w.brokers, w.topic, 2, nil)
	kafkatest.Produce(t, w.brokers, w.topic, 0, hit("/a", ten, 1))
	wantRefusal(t, second(w.try(Options{FromLogStart: true})), job.ExitGap, w.topic+"/0 [0,1)", "deleted and recreated")
}

func TestVersionsWithoutATableAreRefused(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), pageviews)
	for phase, code := range map[job.Phase]job.ExitCode{
		job.Staged: job.ExitNotCaughtUp, job.Replaying: job.ExitNotCaughtUp, job.Building: job.ExitNotCaughtUp,
		job.Retiring: job.ExitConflict, job.Retired: job.ExitConflict, job.Aborted: job.ExitConflict, job.Failed: job.ExitConflict,
	} {
		w.exec(`UPDATE kappactl.version SET phase = $1`, string(phase))
		wantRefusal(t, second(w.try(Options{})), code, "hits/v1 is "+string(phase), "kappactl ")
	}
	w.ref.Number = 7
	wantRefusal(t, second(w.try(Options{})), job.ExitUsage, "hits/v7")
}

const totals = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {ms: bigint}
query: SELECT count(*) AS n, sum(ms) AS total, min(ms) AS least FROM source WHERE ms > 0
serve: {view: public.hits}
`

func TestAQueryWithoutKeysAlwaysHasItsOneRow(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), totals)
	w.process(map[int32][]string{0: {`{"ms":-1}`}})
	wantEqual(t, w.verify(Options{}), 1, 1)
	w.exec(`DELETE FROM public.hits__v1`)
	wantEqual(t, w.verify(Options{}), 1, 1)
	w = newWorld(t, w.brokers, totals)
	w.process(map[int32][]string{0: {`{"ms":-1}`, `{"ms":5}`}, 1: {`{"ms":7}`}})
	wantEqual(t, w.verify(Options{}), 1, 3)
	w.exec(`DELETE FROM public.hits__v1`)
	wantDifferences(t, w.verify(Options{}), "the row: served least=NULL n=0 total=NULL, expected least=5 n=2 total=12")
}

func TestATransactionalLogIsReadWithoutItsAbortedRecords(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, pageviews)
		w.process(map[int32][]string{0: {hit("/a", ten, 1)}})
		kafkatest.Aborted(t, brokers, w.topic, 0, hit("/a", ten, 100), hit("/x", ten, 100))
		_, stable := kafkatest.Ends(t, brokers, w.topic, 0)
		w.exec(`UPDATE kappactl.position SET next = $1 WHERE partition = 0`, stable)
		wantEqual(t, w.verify(Options{}), 1, 1)
	})
}

func TestEveryTypeOfKeyAndValueComesOutEqual(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {s: text, d: date, t: time, ts: timestamp, tz: timestamptz, u: uuid, b: bytea, n: "numeric(12,3)", f: double precision, r: real, i: smallint, o: boolean}
query: |
  SELECT s, d, t, ts, tz, u, b, n, f, r, i, o, upper(s) AS "Upper ""S""",
    count(*) AS k, max(tz) AS tz_max, min(d) AS d_min, max(t) AS t_max, min(u) AS u_min, max(n) AS n_max, sum(n) AS n_sum, avg(n) AS n_avg, min(s) AS s_min, min(f) AS f_min, sum(r) AS r_sum, max(ts) AS ts_max
  FROM source GROUP BY ALL
serve: {view: public.hits}
`)
	full := `{"s":"é\t\"x\"\\\n'","d":"2026-02-28","t":"23:59:59.999999","ts":"2026-01-01T00:00:00.123456","tz":"2026-01-01T02:00:00.5+02:00","u":"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11","b":"AP9B","n":-1.500,"f":1e-7,"r":0.1,"i":-32768,"o":true}`
	w.process(map[int32][]string{0: {full, full, `{}`, `{"s":"","n":0,"f":-0.0,"r":16777216,"d":"1600-01-01"}`}})
	r := w.verify(Options{})
	if r.DeadLetters > 0 {
		t.Fatalf("a test record is a dead letter: %+v", r)
	}
	wantEqual(t, r, 3, 4)
}

// picky fails over a record with ms = 777.
const picky = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ms: bigint}
query: |
  SELECT url, count(*) AS views, sum(CAST(CASE WHEN ms = 777 THEN 'no number' ELSE '1' END AS BIGINT)) AS total FROM source GROUP BY url
serve: {view: public.hits}
`

func TestRecordsOverWhichTheQueryFailsAreDeadLettersHereToo(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), picky)
	long := strings.Repeat("x", 3000)
	w.process(map[int32][]string{0: {hit("/a", ten, 1), hit("/a", ten, 777), hit("/b", ten, 2), hit(long, ten, 2)}, 1: {hit("/b", ten, 3), hit("/b", ten, 777)}}, 1, 3)
	letter := func(partition, offset int) {
		w.exec(`INSERT INTO kappactl.dead_letter (job, number, topic_id, topic, partition, "offset", reason)
			SELECT job, number, topic_id, topic, partition, $2, 'query_error' FROM kappactl.position WHERE partition = $1`, partition, offset)
	}
	letter(0, 1)
	letter(0, 3)
	wantDifferences(t, w.verify(Options{}), "record="+w.topic+"/1:1: served no row, expected dead_letter=yes")
	letter(1, 1)
	r := w.verify(Options{})
	wantEqual(t, r, 2, 6)
	if r.DeadLetters != 3 {
		t.Errorf("%d dead letters, want 3", r.DeadLetters)
	}
	letter(0, 2)
	wantDifferences(t, w.verify(Options{}), "record="+w.topic+"/0:2: served dead_letter=yes, expected no row")
}

func TestAppendedRowsAndTheLatestOfAKeyAreComparedWithTheLog(t *testing.T) {
	const rows = `
job: hits
source:
  topics: [TOPIC]
  format: json
  columns: {url: text, ms: bigint}
query: SELECT url, ms FROM source WHERE ms > 0
serve: {view: public.hits SERVE}
`
	values := map[int32][]string{0: {hit("/a", ten, 1), hit("/a", ten, 1), hit("/b", ten, 2), hit("/b", ten, 0)}}
	w := newWorld(t, kafkatest.Fake(t), strings.Replace(rows, " SERVE", "", 1))
	w.process(values)
	wantEqual(t, w.verify(Options{}), 3, 4)
	w.exec(`DELETE FROM public.hits__v1 WHERE _offset = 1`)
	wantDifferences(t, w.verify(Options{}),
		"_n=0 _offset=1 _partition=0 _topic="+w.topic+": served no row, expected ms=1 url=/a")

	w = newWorld(t, kafkatest.Fake(t), strings.Replace(rows, " SERVE", ", key: [url], order_by: ms", 1))
	w.process(map[int32][]string{0: {hit("/a", ten, 1), hit("/b", ten, 2)}})
	wantEqual(t, w.verify(Options{}), 2, 2)
	w.exec(`UPDATE public.hits__v1 SET _place = NULL, _deletes = '{}' WHERE url = '/a'`)
	wantDifferences(t, w.verify(Options{}), "url=/a: served no row, expected ms=1")
}

func TestExpiredRowsAreLeftOutWhetherTheyAreDeletedOrNot(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), strings.Replace(pageviews, "  view: public.hits", "  keep: 48h\n  view: public.hits", 1))
	recent := time.Now().UTC().Format(time.RFC3339)
	w.process(map[int32][]string{0: {hit("/a", "2020-01-01T10:00:00Z", 1), hit("/b", "2020-01-01T10:00:00Z", 1), hit("/a", recent, 2), `{}`}})
	wantEqual(t, w.verify(Options{}), 2, 4)
	w.exec(`DELETE FROM public.hits__v1 WHERE url = '/b'`)
	wantEqual(t, w.verify(Options{}), 2, 4)
	w.exec(`DELETE FROM public.hits__v1 WHERE url = '/a'`)
	if r := w.verify(Options{}); r.Equal || r.Differences != 1 {
		t.Errorf("a row that is kept and missing is found: %+v", r)
	}
}

func TestExpiredRowsThatWereAppendedAreLeftOut(t *testing.T) {
	w := newWorld(t, kafkatest.Fake(t), `
job: hits
source: {topics: [TOPIC], columns: {url: text, ts: timestamptz, ms: bigint}}
query: SELECT url, CAST(ts AS DATE) AS day, ms FROM source
serve: {view: public.hits, keep: 48h}
`)
	recent := time.Now().UTC().Format(time.RFC3339)
	w.process(map[int32][]string{0: {hit("/a", "2020-01-01T10:00:00Z", 1), hit("/b", "2020-01-01T10:00:00Z", 1), hit("/a", recent, 2), `{}`}})
	wantEqual(t, w.verify(Options{}), 2, 4)
	w.exec(`DELETE FROM public.hits__v1 WHERE url = '/b'`)
	wantEqual(t, w.verify(Options{}), 2, 4)
	w.exec(`DELETE FROM public.hits__v1 WHERE url = '/a'`)
	if r := w.verify(Options{}); r.Equal || r.Differences != 1 {
		t.Errorf("a row that is kept and missing is found: %+v", r)
	}
}
