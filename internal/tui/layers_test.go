package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// lambdaDetail is a lambda job whose generation 7 is being computed, after 6 was refused.
func lambdaDetail(running bool) Detail {
	at := func(ago time.Duration) time.Time { return noon().Add(-ago) }
	timings := map[string]float64{"begin": 0.1, "read": 31, "fill": 2.2, "index": 1, "compare": 3.4, "attach": 0.05}
	all := []batchlayer.Generation{
		{
			Generation: 6, State: generation.Failed, CutAt: at(24 * time.Hour), Seconds: ptr(38.0), Rows: ptr(int64(4_002_111)), Bytes: ptr(int64(391_000_000)),
			Changed: ptr(int64(20_010)), Timings: timings, ExitCode: ptr(5),
			Error: "20,010 of 4,002,111 keys of generation 6 of pageviews/v1 differ from what readers see, 0.5%; batch.max_changed is 0%",
		},
		{Generation: 5, State: generation.Live, CutAt: at(48 * time.Hour), Seconds: ptr(37.0), Rows: ptr(int64(3_950_000)), Bytes: ptr(int64(386_000_000)), Changed: ptr(int64(0)), Timings: timings},
		{Generation: 4, State: generation.Kept, Base: ptr(3), CutAt: at(72 * time.Hour), Seconds: ptr(6.0), Rows: ptr(int64(3_900_000)), Bytes: ptr(int64(380_000_000)), Changed: ptr(int64(12)), Accepted: true},
		{Generation: 0, State: generation.Kept, CutAt: at(240 * time.Hour), Rows: ptr(int64(3_100_000)), Bytes: ptr(int64(300_000_000))},
		{Generation: 3, State: generation.Retired, Dropped: true},
	}
	if running {
		all = append([]batchlayer.Generation{{
			Generation: 7, State: generation.Building, CutAt: at(12 * time.Second), Seconds: ptr(12.0), Timings: map[string]float64{"begin": 0.1},
			Progress: &batchlayer.Progress{Step: "read", Segments: 20, SegmentsDone: 7, Offsets: 1000, OffsetsRemaining: 640, ETASeconds: ptr(21.0)},
		}}, all...)
	}
	d := detail(liveVersion(4))
	l := batchlayer.NewLayers(job.Ref{Job: "pageviews", Number: 1}, all, noon())
	l.SpeedRows = ptr(int64(61_000))
	d.Layers = []batchlayer.Layers{l}
	d.Schedule = &schedule.Status{Job: "pageviews", State: schedule.Active, Expression: "0 2 * * *", Zone: "UTC", NextAt: ptr(noon().Add(14 * time.Hour))}
	d.Archive = &Archived{Files: 412, Bytes: 5_300_000_000, Behind: 1200}
	return d
}

func layersPage(t *testing.T, running bool, o Options) *Model {
	t.Helper()
	o.Job = "pageviews"
	m := opened(t, o, 120, 40)
	d := lambdaDetail(running)
	m.answer(looked{detail: &d})
	m.pressAll("b")
	m.answer(looked{detail: &d})
	return m
}

func TestTheLayersPageShowsGenerationsEpochsAndTheRunUnderWay(t *testing.T) {
	m := layersPage(t, true, Options{})
	shows(t, m, "pageviews  layers", "● generation 5, cut 2d ago, with epochs 5 to 7", "about 61,000 rows in the speed layer", "generation 7: read", "36%, 21s left",
		"next batch run in 14h", "0 2 * * * UTC", "412 files, 5.3 GB", "✗ failed", "○ kept", "on 3", "x cancel")
	hides(t, m, "n run", "retired", "promote")
	m.pressAll("j")
	shows(t, m, "generation 6 of v1", "20,010 of 4,002,111 keys")
	if m.pressAll("n"); m.confirm != nil {
		t.Error("a second run is asked for")
	}
	shows(t, m, "generation 7 is being computed")
	m.pressAll("esc")
	shows(t, m, "pageviews", "b layers")
}

// The header of a job shows how far its archive is, and whether something is wrong with it.
func TestTheHeaderShowsTheArchive(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 160, 40)
	d := detail(liveVersion(2))
	for text, a := range map[string]*Archived{
		"archive whole":                {Files: 1},
		"archive 1,200 offsets behind": {Files: 1, Behind: 1200},
		"archive in trouble":           {Behind: 1200, Troubled: true},
	} {
		d.Archive = a
		m.answer(looked{detail: &d})
		shows(t, m, text)
	}
	d.Archive = nil
	m.answer(looked{detail: &d})
	hides(t, m, "archive")
}

func TestAJobWithoutLayersSaysSo(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 120, 40)
	d := detail(liveVersion(2))
	m.answer(looked{detail: &d})
	hides(t, m, "b layers")
	m.pressAll("b")
	m.answer(looked{detail: &d})
	shows(t, m, "no version of the job is one of mode lambda")
	if m.pressAll("n", "x", "r"); m.confirm != nil {
		t.Error("an act without layers")
	}
}

func TestActsOnLayersAreConfirmed(t *testing.T) {
	for key, want := range map[string]Act{
		"n": {Verb: ledger.BatchRun, Ref: job.Ref{Job: "pageviews", Number: 1}},
		"x": {Verb: ledger.BatchCancel, Ref: job.Ref{Job: "pageviews", Number: 1}},
		"r": {Verb: ledger.BatchRollback, Ref: job.Ref{Job: "pageviews", Number: 1}, Generation: 4},
	} {
		m := layersPage(t, key == "x", Options{})
		if key == "r" {
			m.pressAll("r") // the newest is not kept
			shows(t, m, "select a generation that is kept")
			m.pressAll("j", "j")
			shows(t, m, "r rollback")
		}
		m.pressAll(key)
		if m.confirm == nil {
			t.Fatalf("%s asks for nothing", key)
		}
		if m.confirm.act != want {
			t.Errorf("%s asks for %+v", key, m.confirm.act)
		}
		shows(t, m, want.Command(), "type pageviews to confirm", m.batchEffect(want)[:30])
		m.pressAll(strings.Split("pageviews", "")...)
		if m.press("enter", "") == nil || m.confirm.stage != stageDoing {
			t.Errorf("%s is not done", key)
		}
	}
	if got := (Act{Verb: ledger.BatchRollback, Ref: ref, Generation: 4}).Command(); got != "kappactl batch rollback pageviews 4 v2" {
		t.Error(got)
	}
	m := layersPage(t, false, Options{ReadOnly: true})
	if m.pressAll("n", "j", "j", "r", "p"); m.confirm != nil {
		t.Error("an act in a window to look only")
	}
	m = layersPage(t, false, Options{})
	if m.pressAll("p"); m.confirm != nil {
		t.Error("a promote on the page of layers")
	}
}
