package speedlayer

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// sessions has the rig's sessions begin with these settings, as a role or a database may have them, on so many connections.
func (r *rig) sessions(settings string, connections int32) {
	r.t.Helper()
	u, err := url.Parse(r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	q := u.Query()
	q.Set("options", settings)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	if r.pool, err = pg.Open(r.t.Context(), pg.Config{DSN: u.String(), MaxConns: connections}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.pool.Close)
}

// TestWhatIsStoredDoesNotDependOnTheSettingsOfTheRole: a text keeps its characters, a NULL key stays NULL, an interval keeps its signs, and a set that is merged by
// way of text keeps its values to the last digit and to the right zone.
func TestWhatIsStoredDoesNotDependOnTheSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	const sql = `SELECT k, count(*) AS n, last(to_months(-1) + to_days(CAST(v AS INTEGER))) AS span, count(DISTINCT v / 3.0::DOUBLE) AS parts,
    count(DISTINCT TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_days(CAST(v AS INTEGER))) AS days FROM source GROUP BY k`
	r := newRig(t, kafkatest.Fake(t), 1, sql, func(s *job.Spec) { s.DistinctMax = 100 })
	r.sessions("-c array_nulls=off -c IntervalStyle=sql_standard -c DateStyle=SQL,DMY -c TimeZone=Asia/Kolkata -c extra_float_digits=-9 -c bytea_output=escape -c client_encoding=LATIN1 -c standard_conforming_strings=off -c statement_timeout=20s", 16)
	records := []string{`{"v":1}`, `{"v":2}`, `{"v":5}`, `{"k":"é","v":7}`}
	kafkatest.Produce(t, r.brokers, r.topic, 0, records...)
	r.startReplay(2)
	r.agent("a", nil)
	r.build()
	kafkatest.Produce(t, r.brokers, r.topic, 0, records...)
	kafkatest.Produce(t, r.brokers, r.topic, 0, "no JSON")
	r.caughtUp()
	got := lines(t, r.pool, `SELECT k IS NULL AS none, n, span = make_interval(months => -1, days => CASE WHEN octet_length(k) = 2 THEN 7 ELSE 5 END) AS span,
		cardinality(parts__set) AS parts, cardinality(days__set) AS days FROM public.sums__v1 ORDER BY 1`)
	if diff := cmp.Diff([]string{"(f,2,t,1,1)", "(t,6,t,3,3)"}, got); diff != "" {
		t.Error(diff)
	}
	letters, err := Store{}.DeadLetters(t.Context(), r.pool, r.ref, 10)
	if err != nil || len(letters) != 1 || string(letters[0].Payload) != "no JSON" || letters[0].Key != nil {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
}
