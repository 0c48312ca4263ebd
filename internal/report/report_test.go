package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

var start = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// sample is a deployment that replayed for a minute, caught up, and waited for an hour to be promoted.
func sample() Report {
	r := Report{
		Schema: Schema, At: start.Add(2 * time.Hour), Job: "pageviews", Team: "growth", View: "public.pageviews_hourly", Version: "v3", Previous: new("v2"),
		Hash: "0123456789ab", Deployment: 7, State: job.Observing, Phase: job.Live, By: "ann@build", GitRevision: "4f2a9c01d3e8+",
		CreatedAt: start, PromotedAt: new(start.Add(50 * time.Minute)), Records: 10_000_000, DeadLetters: 12,
		Timings: ledger.Timings{Start: new(0.4), Replay: new(58.2), Build: new(1.1), Index: new(0.2), Analyze: new(0.1), CatchUp: new(10.3), Flip: new(0.02)},
		Plan: Plan{
			Changes:    []job.Change{{Path: "query", From: "SELECT url, count(*) …", To: "SELECT lower(url) AS url, count(*) …"}},
			Partitions: []Range{{"pageviews", 0, 0, 5_000_000}, {"pageviews", 1, 0, 5_000_000}}, Offsets: 10_000_000,
		},
		Checks: []status.Check{
			{Name: "not_empty", Stage: "before", Outcome: "pass", At: new(start.Add(80 * time.Second)), Seconds: 0.01},
			{Name: "close_to_live", Stage: "before", Outcome: "fail", Detail: "<b>31</b> of 400 rows differ", At: new(start.Add(80 * time.Second)), Seconds: 0.2, Diff: new(found())},
			{Name: "never_ran", When: "after"},
		},
		Events:       []ledger.PastEvent{{ID: 1, At: start, Kind: "deploy", Message: "staged as 0123456789ab", By: "ann@build"}},
		PreviousFile: "job: pageviews\nteam: growth\nsource:\n  topics: [pageviews]\n  columns: {url: text, ms: bigint}\nquery: |\n  SELECT url, count(*) AS views\n  FROM source\n  GROUP BY url\nserve:\n  view: public.pageviews_hourly\nkeep_old: 24h\n",
		File:         "job: pageviews\nteam: growth\nsource:\n  topics: [pageviews]\n  columns: {url: text, ms: bigint}\nquery: |\n  SELECT lower(url) AS url, count(*) AS views\n  FROM source\n  WHERE 1 < 2\n  GROUP BY url\nserve:\n  view: public.pageviews_hourly\nkeep_old: 24h\n",
	}
	done := batchlayer.Generation{
		Job: "pageviews", Version: "v3", Generation: 4, State: generation.Live, Rows: new(int64(31)), Bytes: new(int64(8192)),
		Changed: new(int64(0)), CutAt: start, Seconds: new(61.0),
	}
	failed := batchlayer.Generation{Generation: 5, State: generation.Failed, Base: new(4), CutAt: start, Changed: new(int64(12)), Error: "12 of 400 keys <differ>"}
	under := batchlayer.Generation{
		Generation: 6, State: generation.Building, CutAt: start,
		Progress: &batchlayer.Progress{Step: "read", Offsets: 200, OffsetsRemaining: 50, ETASeconds: new(20.0)},
	}
	layers := batchlayer.NewLayers(job.Ref{Job: "pageviews", Number: 3}, []batchlayer.Generation{under, failed, done}, start.Add(time.Hour))
	r.Layers = &layers
	for i := range 180 {
		at := time.Duration(i) * time.Second
		p := ledger.LagPoint{At: start.Add(at), Phase: job.Replaying, LagRecords: new(int64(10_000_000 - 160_000*i)), RecordsPerSecond: new(170_000.0 + 20_000*float64(i%7))}
		switch {
		case i > 75:
			at += time.Duration(i-75) * 30 * time.Second
			p = ledger.LagPoint{At: start.Add(at), Phase: job.Verified, LagRecords: new(int64(300 + 41*(i%9))), RecordsPerSecond: new(2000.0)}
		case i > 60:
			p.Phase, p.LagRecords = job.CatchingUp, new(int64(400_000-26_000*(i-60)))
		case i > 20 && i < 26:
			p.LagRecords, p.RecordsPerSecond = nil, nil // the brokers were away
		}
		r.Lag = append(r.Lag, p)
	}
	return r
}

// found returns the differences that the sample's diff check found.
func found() checks.Diff {
	return checks.Diff{
		A: "v2", B: "v3", Keys: []string{"url"}, Columns: []string{"views", "total_ms"}, OnlyA: 8, OnlyB: 2, Changed: 21, Same: 369,
		Examples: []checks.Example{
			{Kind: checks.Changed, Key: []byte(`["/a<b>"]`), Columns: []string{"views"}, A: []byte(`{"url":"/a<b>","views":9007199254740993,"total_ms":5}`), B: []byte(`{"url":"/a<b>","views":12,"total_ms":5}`)},
			{Kind: checks.OnlyA, Key: []byte(`["/A"]`), A: []byte(`{"url":"/A","views":3,"total_ms":null}`), B: []byte(`null`)},
		},
	}
}

func TestThePageStandsAlone(t *testing.T) {
	var b strings.Builder
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if path := os.Getenv("KAPPACTL_REPORT_SAMPLE"); path != "" { // to look at it
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, foreign := range []string{"<script", "http:", "https:", "src=", "@import", "url(", "<link"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page holds %q", foreign)
		}
	}
	for _, want := range []string{
		"pageviews v3", "prefers-color-scheme: dark", "ann@build", "4f2a9c01d3e8&#43;", "&lt;b&gt;31&lt;/b&gt; of 400 rows differ", `<span class="add">+   WHERE 1 &lt; 2</span>`, "url /a&lt;b&gt;", "views 9007199254740993", "<b>369</b> the same", "no such key", "50m until promoted", ">promoted</text>", "10,000,000",
		"Readers see generation 4, cut 2026-01-01 10:00:00Z, with 3 epochs of the speed layer.", "Generation 6 is being computed: read, 75% read, 20s left.",
		`<td class="good">live`, `<td class="bad">failed`, "12 of 400 keys &lt;differ&gt;", "8.2 kB",
		"Records behind, until caught up", "Records behind, since then", `<td class="bad">fail`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		wellFormed(t, svg)
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}

func TestAnEmptyReportIsAPageAndADocument(t *testing.T) {
	var page, doc strings.Builder
	if err := HTML(&page, Report{}); err != nil || !strings.Contains(page.String(), "Nothing was sampled") {
		t.Errorf("%v: %s", err, page.String())
	}
	if err := render.JSON(&doc, Report{}); err != nil {
		t.Error(err)
	}
}

func TestACurveHasGapsWhereNothingIsKnown(t *testing.T) {
	point := func(second int, lag *int64, phase job.Phase) ledger.LagPoint {
		return ledger.LagPoint{At: start.Add(time.Duration(second) * time.Second), LagRecords: lag, Phase: phase}
	}
	all := charts([]ledger.LagPoint{
		point(0, new(int64(8)), job.Replaying), point(1, new(int64(4)), job.Replaying), point(2, nil, job.Replaying), point(3, new(int64(2)), job.CaughtUp),
		point(4, new(int64(0)), job.CaughtUp),
	}, new(start.Add(3*time.Second)))
	if len(all) != 1 { // nothing is known of the speed
		t.Fatalf("%d charts", len(all))
	}
	c := all[0]
	if c.Flip == nil || c.Flip.At != 675 || c.Flip.Late {
		t.Errorf("flip at %+v", c.Flip)
	}
	if want := "M0 0L225 100M675 150L900 200"; c.Line != want {
		t.Errorf("line %q, want %q", c.Line, want)
	}
	if want := "M0 0L225 100L225 200L0 200ZM675 150L900 200L900 200L675 200Z"; c.Area != want {
		t.Errorf("area %q, want %q", c.Area, want)
	}
	bands := []band{{0, 675, job.Replaying, true, true}, {675, 225, job.CaughtUp, true, false}}
	if diff := cmp.Diff(bands, c.Bands); diff != "" {
		t.Error(diff)
	}
	if c.Ticks[4].Text != "8" || c.Ticks[1].Text != "2" || c.Marks[4].Text != "+4s" {
		t.Errorf("%v %v", c.Ticks, c.Marks)
	}
}

func TestTheChangedLinesOfAFileAreShown(t *testing.T) {
	numbered := func(from, to int, but map[int]string) string {
		var lines []string
		for i := from; i <= to; i++ {
			if text, ok := but[i]; ok {
				lines = append(lines, text)
				continue
			}
			lines = append(lines, fmt.Sprint(i))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	for _, c := range []struct{ from, to, want string }{
		{"a\nb\n", "a\nb", ""},
		{"", "a\n", "+a"},
		{"a\n", "", "-a"},
		{"a\nb\nc\n", "a\nc\nd\n", " a,-b, c,+d"},
		{numbered(1, 20, nil), numbered(1, 20, map[int]string{10: "ten"}), "⋯, 7, 8, 9,-10,+ten, 11, 12, 13,⋯"},
		{numbered(1, 12, nil), numbered(1, 12, map[int]string{2: "two", 11: "eleven"}), " 1,-2,+two, 3, 4, 5,⋯, 8, 9, 10,-11,+eleven, 12"},
	} {
		var got []string
		for _, l := range compareLines(c.from, c.to) {
			got = append(got, l.Sign+l.Text)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ",")); diff != "" {
			t.Errorf("%q to %q:\n%s", c.from, c.to, diff)
		}
	}
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "%d\n", i)
	}
	if got := compareLines(long.String(), strings.ReplaceAll(long.String(), "1", "one")); len(got) < 5000 {
		t.Errorf("%d lines", len(got))
	}
}
