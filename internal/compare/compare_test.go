package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

const file = `job: views
team: growth
source:
  topics: [views]
  columns:
    url: text
    amount: "numeric(10,2)"
query: |
  SELECT url, count(*) AS n FROM source GROUP BY url
serve:
  view: public.views
  grant: {select: [readers]}
checks: [{name: rows, sql: "SELECT true"}]
replay: {workers: 2, start: 2026-01-01T00:00:00Z}
promote: manual
`

func at() place {
	return place{view: job.ViewName{Schema: "kappactl_compare_ab_views", Name: "served"}, archive: "file:///tmp/a", maxRate: "10MB/s"}
}

func TestAVariantKeepsWhatChangesTheResults(t *testing.T) {
	before, err := job.Parse("views.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Ways() {
		text, err := variant([]byte(file), w, at())
		if err != nil {
			t.Fatal(err)
		}
		got, err := job.Parse("views.yaml", text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", w, err, text)
		}
		if got.Query != before.Query || cmp.Diff(got.Source, before.Source) != "" {
			t.Errorf("%s: query or source differ:\n%s", w, text)
		}
		switch {
		case len(got.Checks) > 0, got.Promote != job.PromoteAuto, got.Ready.StableFor != 0, strings.Contains(string(text), "readers"):
			t.Errorf("%s is held up, or shown to readers:\n%s", w, text)
		case got.Serve.View.String() != "kappactl_compare_ab_views.served":
			t.Errorf("%s serves %s", w, got.Serve.View)
		case (got.Archive != nil) != w.Archives(), (got.Replay.Source == job.SourceArchive) != w.Archives(), (got.Mode == job.Lambda) != (w == Lambda):
			t.Errorf("%s is another way:\n%s", w, text)
		}
	}
}

func TestTheKeeperReadsNothingOfThePast(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, err := keeper([]byte(file), at(), now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := job.Parse("keeper.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got.Job != keeperJob || got.Archive == nil || !strings.Contains(string(text), "2026-03-01T12:00:00Z") {
		t.Errorf("%s", text)
	}
}

func TestFreshnessIsHowLongAnEndWaitsForThePosition(t *testing.T) {
	p := job.Partition{Topic: "t"}
	start := time.Unix(0, 0)
	var f freshness
	look := func(ms int, end, position int64) {
		f.look(start.Add(time.Duration(ms)*time.Millisecond), map[job.Partition]int64{p: end}, map[job.Partition]int64{p: position})
	}
	look(0, 10, 5) // what was there before does not count
	look(100, 20, 5)
	look(200, 20, 10)
	look(300, 30, 20) // 20 took 200 ms
	look(400, 30, 30) // 30 took 100 ms
	look(500, 40, 40) // visible when it is first seen
	want := &Freshness{Median: 0.1, P99: 0.2, Samples: 3}
	if diff := cmp.Diff(want, f.result()); diff != "" {
		t.Error(diff)
	}
	var quiet freshness
	quiet.look(start, map[job.Partition]int64{p: 1}, nil)
	if quiet.result() != nil {
		t.Error("no record arrived, and there is a figure")
	}
}

func TestTheTableShowsMedianAndRange(t *testing.T) {
	batch := 3.0
	rounds := []Measure{{Deploy: 3, Table: 8192, Equal: true}, {Deploy: 1, Table: 8192, Equal: true}, {Deploy: 2, Table: 8192, Equal: true, Batch: &batch}}
	cells := map[string]string{}
	for _, f := range Figures() {
		cells[f.Name] = f.Cell(rounds, "-")
	}
	for name, want := range map[string]string{
		"time to fix a bug": "2s (1s to 3s)", "version table": "8.2 kB", "batch run": "3s", "freshness, p99": "-",
	} {
		if cells[name] != want {
			t.Errorf("%s: %q, want %q", name, cells[name], want)
		}
	}
}

func TestThePageHasEveryFigureAndSaysWhatIsNotExact(t *testing.T) {
	c := Comparison{Job: "views", Ref: "v3", Rounds: 1, Ways: map[Way][]Measure{KappaLog: {{Deploy: 2, Equal: true}}, Lambda: {{Deploy: 4}}}}
	var b strings.Builder
	if err := HTML(&b, c); err != nil {
		t.Fatal(err)
	}
	for _, f := range Figures() {
		if !strings.Contains(b.String(), "<h2>"+f.Name) {
			t.Errorf("no %s", f.Name)
		}
	}
	for _, want := range []string{"Not all results equal", "width: 50%", "width: 100%", "views v3"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the page", want)
		}
	}
}
