package e2e_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the oracle reads the Parquet file itself
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const flightsJob = `job: flights
source:
  topics: [%s]
  format: json
  columns:
    date: timestamp
    delay: integer
    distance: integer
    origin: text
    destination: text
query: |
  SELECT origin, date_trunc('day', date) AS day, count(*) AS flights, sum(delay) AS total_delay
  FROM source %s
  GROUP BY origin, day
serve:
  view: public.flights_daily
ready: {max_lag_time: 5s, stable_for: 0s}
`

const statsJob = `job: flight_stats
source:
  topics: [%s]
  format: json
  columns: {date: timestamp, delay: integer, distance: integer, origin: text}
query: |
  SELECT origin, date_trunc('day', date) AS day, avg(delay) AS avg_delay, max(distance) AS longest
  FROM source
  GROUP BY origin, day
serve:
  view: public.flight_stats
ready: {stable_for: 0s}
`

// TestFlights takes the main job through its whole life on real data and compares the view with the oracle at each step,
// while a reader polls it.
func TestFlights(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		limit := 100_000
		if soak {
			limit = 3_000_000
		}
		w, oracle := newWorld(t, brokers), newFlightsOracle(t, limit)
		w.serve()
		topic := kafkatest.Name("flights")
		w.ok("dev", "load", oracle.file, "--topic", topic, "--partitions", "4", "--limit", fmt.Sprint(limit))
		v1 := w.file("v1.yaml", fmt.Sprintf(flightsJob, topic, ""))
		v2 := w.file("v2.yaml", fmt.Sprintf(flightsJob, topic, "WHERE delay > 15"))
		all, delayed := oracle.daily(""), oracle.daily("WHERE delay > 15")

		var first deployed
		w.into(&first, "deploy", v1)
		if first.Version != "v1" || first.ExitCode != 0 || first.Records != int64(limit) {
			t.Fatalf("deploy v1: %+v", first)
		}
		w.sees(dailyView, all)
		stopReading := w.keepReading("SELECT count(*), sum(flights) FROM flights_daily")

		w.ok("deploy", v2)
		w.sees(dailyView, all) // verified, not promoted
		w.ok("promote", "flights")
		w.sees(dailyView, delayed)
		w.equal("flights")
		w.ok("rollback", "flights")
		w.sees(dailyView, all)

		refused := w.run("deploy", v2)
		if refused.code == 0 || !strings.Contains(refused.stderr, "--again") {
			t.Fatalf("deploy of what was rolled back: exit %d, %s", refused.code, refused.stderr)
		}
		w.ok("deploy", v2, "--again")
		w.sees(dailyView, delayed)
		w.ok("retire", "flights", "v1", "--now", "--yes")
		w.sees(dailyView, delayed)
		w.goneFrom("flights", "v1")
		if polls := stopReading(); polls < 20 {
			t.Errorf("the reader saw only %d answers", polls)
		}

		nothing := w.code(10, "deploy", v2, "--detailed-exitcode")
		if !strings.Contains(nothing.stdout+nothing.stderr, "nothing to do") {
			t.Errorf("deploy of the live job says %q %q", nothing.stdout, nothing.stderr)
		}
		w.equal("flights")

		w.ok("deploy", w.file("stats.yaml", fmt.Sprintf(statsJob, topic)))
		w.sees(`SELECT concat_ws('|', origin, day::date, avg_delay, longest) FROM flight_stats`, oracle.stats())
		w.equal("flight_stats")
	})
}

const dailyView = `SELECT concat_ws('|', origin, day::date, flights, total_delay) FROM flights_daily`

// deployed is what deploy --output json prints.
type deployed struct {
	Job        string  `json:"job"`
	Version    string  `json:"version"`
	Deployment any     `json:"deployment"`
	Phase      string  `json:"phase"`
	ExitCode   int     `json:"exit_code"`
	Records    int64   `json:"records"`
	Seconds    float64 `json:"seconds"`
}

// flightsOracle answers from the Parquet file what the views have to show.
type flightsOracle struct {
	t     *testing.T
	db    *sql.DB
	file  string
	limit int
}

func newFlightsOracle(t *testing.T, limit int) *flightsOracle {
	t.Helper()
	out, err := exec.Command("../../scripts/fetch-flights.sh").Output()
	if err != nil {
		t.Fatalf("fetch the flights: %v", err)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &flightsOracle{t: t, db: db, file: strings.TrimSpace(string(out)), limit: limit}
}

func (o *flightsOracle) daily(where string) []string {
	o.t.Helper()
	return o.query(`concat_ws('|', origin, date_trunc('day', date)::DATE, count(*), sum(delay))`, where)
}

func (o *flightsOracle) stats() []string {
	o.t.Helper()
	// PostgreSQL prints 3 where DuckDB prints 3.0.
	return o.query(`concat_ws('|', origin, date_trunc('day', date)::DATE, regexp_replace(avg(delay)::VARCHAR, '\.0$', ''), max(distance))`, "")
}

func (o *flightsOracle) query(columns, where string) []string {
	o.t.Helper()
	rows, err := o.db.QueryContext(o.t.Context(), fmt.Sprintf(
		`SELECT %s FROM (SELECT * FROM read_parquet('%s') LIMIT %d) %s GROUP BY origin, date_trunc('day', date)`, columns, o.file, o.limit, where))
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			o.t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// sees compares the rows of a query with the oracle's, both as lines.
func (w *world) sees(query string, want []string) {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(got)
	if len(want) == 0 {
		w.t.Fatal("the oracle has no rows: the comparison could not fail")
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("%s: %d rows, the oracle has %d (-oracle +view):\n%s", query, len(got), len(want), clip(cmp.Diff(want, got)))
	}
}

// equal runs verify, which has to find no difference.
func (w *world) equal(args ...string) {
	w.t.Helper()
	var report struct {
		Equal   bool  `json:"equal"`
		Rows    int64 `json:"rows"`
		Records int64 `json:"records"`
	}
	w.into(&report, append([]string{"verify"}, args...)...)
	if !report.Equal || report.Records == 0 {
		w.t.Fatalf("verify %v: %+v", args, report)
	}
}

// goneFrom checks that nothing of a retired version is left but its history.
func (w *world) goneFrom(job, version string) {
	w.t.Helper()
	var tables, positions int
	err := w.pool.QueryRow(w.t.Context(), `SELECT (SELECT count(*) FROM pg_class WHERE relname LIKE $1),
		(SELECT count(*) FROM kappactl.position WHERE job = $2 AND 'v' || number = $3)`, job+`\_\_`+version+`%`, job, version).Scan(&tables, &positions)
	if err != nil {
		w.t.Fatal(err)
	}
	if tables != 0 || positions != 0 {
		w.t.Errorf("%s %s is retired and has %d relations and %d positions left", job, version, tables, positions)
	}
	groups, err := kadm.NewClient(kafkatest.Client(w.t, w.brokers)).ListGroups(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if group := "kappactl." + job + "." + version; slices.Contains(groups.Groups(), group) {
		w.t.Errorf("group %s is still there", group)
	}
}

// keepReading polls a query that counts rows from its own connection until the returned function is called, which
// says how often it was answered. An error or an empty answer fails the test.
func (w *world) keepReading(query string) (stop func() int) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	quit, polls := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { polls <- n }()
		for {
			select {
			case <-quit:
				return
			case <-time.After(20 * time.Millisecond): // without a pause it would keep a core busy all the while
			}
			var rows int64
			var sum *int64
			if err := conn.QueryRow(w.t.Context(), query).Scan(&rows, &sum); err != nil {
				w.t.Errorf("reader: %v", err)
				return
			}
			if rows == 0 || sum == nil {
				w.t.Errorf("reader: an empty answer")
				return
			}
			n++
		}
	}()
	return func() int {
		close(quit)
		n := <-polls
		_ = conn.Close(w.t.Context())
		return n
	}
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "…"
	}
	return s
}
