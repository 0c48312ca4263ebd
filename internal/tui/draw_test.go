package tui

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func looks() []theme {
	return []theme{newTheme(Look{}), newTheme(Look{Color: true}), newTheme(Look{ASCII: true}), newTheme(Look{Color: true, Light: true, ASCII: true})}
}

func TestBarsAreAsWideAsAskedAndTellTheTruth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		th := looks()[rapid.IntRange(0, 3).Draw(r, "look")]
		width, share := rapid.IntRange(0, 200).Draw(r, "width"), rapid.Float64Range(-1, 2).Draw(r, "share")
		p := rapid.SampledFrom([]pen{th.block, th.line}).Draw(r, "pen")
		bar := ansi.Strip(th.stroke(p, candidate, share, width))
		if cells(bar) != width {
			r.Fatalf("%d cells, want %d: %q", cells(bar), width, bar)
		}
		full := strings.Repeat(p.steps[len(p.steps)-1], width)
		if width > 0 && (share >= 1) != (bar == full) {
			r.Fatalf("share %v of %d cells is %q", share, width, bar)
		}
		if width > 1 && share > 0 && bar == strings.Repeat(p.track, width) {
			r.Fatalf("share %v looks like nothing: %q", share, bar)
		}
	})
}

func TestBarsGrow(t *testing.T) {
	th := newTheme(Look{})
	if diff := cmp.Diff([]string{"░░░░", "▏░░░", "█▌░░", "███▉", "████", "░░░░"}, []string{
		th.bar(plain, 0, 4), th.bar(plain, 0.001, 4), th.bar(plain, 0.375, 4), th.bar(plain, 0.9999, 4), th.bar(plain, 1, 4), th.bar(plain, math.NaN(), 4),
	}); diff != "" {
		t.Error(diff)
	}
}

func TestChartsAreAsLargeAsAsked(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		th := looks()[rapid.IntRange(0, 3).Draw(r, "look")]
		width, height := rapid.IntRange(0, 90).Draw(r, "width"), rapid.IntRange(0, 12).Draw(r, "height")
		values := rapid.SliceOf(rapid.SampledFrom([]float64{0, 1, 7.5, 1e12, math.NaN(), -3, math.Inf(1)})).Draw(r, "values")
		values = squeeze(values, max(0, width))
		lines := th.chart(candidate, values, width, height)
		if width == 0 || height == 0 {
			if lines != nil {
				r.Fatal("a chart without room")
			}
			return
		}
		if len(lines) != height {
			r.Fatalf("%d lines", len(lines))
		}
		for _, l := range lines {
			if cells(l) != width {
				r.Fatalf("%d cells, want %d", cells(l), width)
			}
		}
	})
}

func TestChartsStandOnTheirFeet(t *testing.T) {
	th := newTheme(Look{})
	if diff := cmp.Diff([]string{"   ▄█", "  ▄██"}, th.chart(plain, []float64{math.NaN(), 1, 3, 4}, 5, 2)); diff != "" {
		t.Error(diff)
	}
	if got := th.spark(plain, []float64{0, 4, 8, math.NaN(), 2}, 5); got != "▁▄▇ ▂" {
		t.Errorf("got %q", got)
	}
}

func TestClippedTextFitsAndIsMarked(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		th := looks()[rapid.IntRange(0, 3).Draw(r, "look")]
		s, width := clean(rapid.String().Draw(r, "text")), rapid.IntRange(-2, 40).Draw(r, "width")
		got := th.clip(s, width)
		if cells(got) > max(0, width) {
			r.Fatalf("%d cells of %d: %q", cells(got), width, got)
		}
		if cells(s) > width && width > 0 && !strings.HasSuffix(got, th.mark) {
			r.Fatalf("%q was cut to %q without a mark", s, got)
		}
		if width >= 0 && cells(th.fit(s, width, true)) != width {
			r.Fatalf("fit %q", th.fit(s, width, true))
		}
		for _, l := range th.wrap(s, width, 3) {
			if cells(l) > width {
				r.Fatalf("wrapped line %q is wider than %d", l, width)
			}
		}
		if n := len(th.wrap(s, width, 3)); n > 3 {
			r.Fatalf("%d lines", n)
		}
	})
}

func TestGridsFit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		th := looks()[rapid.IntRange(0, 3).Draw(r, "look")]
		var g grid
		n := rapid.IntRange(1, 8).Draw(r, "columns")
		for range n {
			g.columns = append(g.columns, column{
				title: rapid.StringMatching(`[a-z]{0,9}`).Draw(r, "title"), right: rapid.Bool().Draw(r, "right"), drop: rapid.IntRange(0, 4).Draw(r, "drop"),
				least: rapid.IntRange(0, 12).Draw(r, "least"), most: rapid.IntRange(0, 60).Draw(r, "most"),
				width: rapid.IntRange(0, 12).Draw(r, "width"), tight: rapid.IntRange(0, 9).Draw(r, "tight"), rest: rapid.Bool().Draw(r, "rest"),
			})
		}
		for range rapid.IntRange(0, 5).Draw(r, "rows") {
			var row []cell
			for range rapid.IntRange(0, n).Draw(r, "cells") {
				c := word(dim, rapid.String().Draw(r, "cell"))
				c.brief = rapid.SampledFrom([]string{"", "short"}).Draw(r, "brief")
				c.tail = rapid.SampledFrom([]string{"", "/7", "/1024"}).Draw(r, "tail")
				row = append(row, c)
			}
			g.rows = append(g.rows, row)
		}
		width, height := rapid.IntRange(0, 150).Draw(r, "width"), rapid.IntRange(0, 8).Draw(r, "height")
		lines := g.lines(th, width, height, rapid.IntRange(0, 5).Draw(r, "from"), 0)
		if len(lines) > height {
			r.Fatalf("%d lines of %d", len(lines), height)
		}
		for _, l := range lines {
			if cells(l) > width {
				r.Fatalf("%d cells of %d: %q", cells(l), width, l)
			}
		}
	})
}

func TestPercentReachesTheEndOnlyAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		p    progress
		want string
	}{
		{progress{}, "-"},
		{progress{0, 0, true}, "100.0%"},
		{progress{0, 9, true}, "0.0%"},
		{progress{999_999, 1_000_000, true}, "99.9%"},
		{progress{7, 7, true}, "100.0%"},
		{progress{1, 3, true}, "33.3%"},
	} {
		if got := c.p.percent(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.p, got, c.want)
		}
	}
}

func TestBriefCountsAreBrief(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1_000: "1.0k", 9_949: "9.9k", 9_950: "10k", 99_499: "99k", 999_499: "999k", 999_500: "1.0M", 2_300_000: "2.3M",
		math.MaxInt64: "9.2E",
	} {
		if got := brief(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestProgressBeginsWhereTheVersionBegins(t *testing.T) {
	p := part("t", 0, 1500, 2000, 0, 10, job.Lagging, "")
	p.Start = ptr(int64(400))
	if got := partitionProgress(p, Facts{Starts: map[string]int64{"t/0": 1000}}); got != (progress{500, 1000, true}) {
		t.Errorf("got %+v", got)
	}
	if got := partitionProgress(p, Facts{}); got != (progress{1100, 1600, true}) {
		t.Errorf("got %+v", got)
	}
	p.LastStable = nil
	if got := partitionProgress(p, Facts{}); got.known {
		t.Errorf("got %+v of an unknown end", got)
	}
}

func TestCurvesComeFromNewSamplesOnly(t *testing.T) {
	var h history
	at := noon()
	for second := range 700 {
		v := version("v1", job.CatchingUp, job.Lagging, "", part("t", 0, int64(second*900), int64(1_000_000+second*250), 0, 900, job.Lagging, ""))
		v.Partitions[0].SampledAt = at.Add(time.Duration(second) * time.Second)
		h.add(v)
		h.add(v)
	}
	if len(h.samples) != keepSamples {
		t.Errorf("%d samples", len(h.samples))
	}
	if made := latest(h.made()); made == nil || math.Abs(*made-250) > 1e-9 {
		t.Errorf("new records arrive at %v", made)
	}
	if lag := latest(h.lags()); *lag != 1_000_000+699*250-699*900 {
		t.Errorf("lag %v", *lag)
	}
	var none *history
	if latest(none.made()) != nil || none.span() != 0 {
		t.Error("a curve of nothing")
	}
}
