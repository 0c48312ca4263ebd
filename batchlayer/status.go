package batchlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Generation is a generation as commands print it. Its JSON is documented and only ever grows.
type Generation struct {
	Job         job.Name           `json:"job"`
	Version     string             `json:"version"`
	Generation  int                `json:"generation"`
	State       generation.State   `json:"state"`
	Base        *int               `json:"base"` // null: computed from scratch
	Rows        *int64             `json:"rows"` // about
	Bytes       *int64             `json:"bytes"`
	Compared    *int64             `json:"compared"` // keys; null: not compared
	Changed     *int64             `json:"changed"`
	Accepted    bool               `json:"accepted"` // shown although it differed
	CutAt       time.Time          `json:"cut_at"`
	StartedAt   time.Time          `json:"started_at"`
	LiveAt      *time.Time         `json:"live_at"`
	EndedAt     *time.Time         `json:"ended_at"`
	Seconds     *float64           `json:"seconds"` // that its run took or has taken until now; null of a replay
	Timings     map[string]float64 `json:"timings"` // seconds by step
	Trouble     string             `json:"trouble"` // why its run or its removal is tried again, or what it waits for; empty: nothing
	TroubleCode reason.Code        `json:"trouble_code"`
	Error       string             `json:"error"`
	ErrorCode   reason.Code        `json:"error_code"`
	ExitCode    *int               `json:"exit_code"`
	Progress    *Progress          `json:"progress"` // of one that is being built
	Dropped     bool               `json:"-"`        // its rows are gone
}

// Kind is how a generation was computed, in words.
func (g Generation) Kind() string {
	switch {
	case g.Base != nil:
		return fmt.Sprintf("on %d", *g.Base)
	case g.Generation == 0:
		return "replay"
	}
	return "full"
}

// Share is the part of the offsets that is read, from 0 to 1.
func (p Progress) Share() float64 {
	if p.Offsets == 0 {
		return 1
	}
	return float64(p.Offsets-p.OffsetsRemaining) / float64(p.Offsets)
}

// Progress is how far a run is.
type Progress struct {
	Step             string   `json:"step"` // that is under way
	Segments         int      `json:"segments"`
	SegmentsDone     int      `json:"segments_done"`
	Offsets          int64    `json:"offsets"`
	OffsetsRemaining int64    `json:"offsets_remaining"`
	Records          int64    `json:"records"`
	Bytes            int64    `json:"bytes"`
	ETASeconds       *float64 `json:"eta_seconds"` // until all is read; null: not known
}

// Steps are what a run does, in order.
func Steps() []string { return []string{"begin", "read", "fill", "index", "compare", "attach", "show"} }

// Generations are those of a version, the newest first. A run under way comes with its progress.
func Generations(ctx context.Context, db pg.DB, speed SpeedLayer, ref job.Ref) ([]Generation, error) {
	rows, err := generation.List(ctx, db, ref)
	if err != nil {
		return nil, err
	}
	return showAll(ctx, db, speed, rows)
}

func showAll(ctx context.Context, db pg.DB, speed SpeedLayer, rows []generation.Row) (out []Generation, err error) {
	out = make([]Generation, len(rows))
	for i, r := range rows {
		if out[i], err = shown(ctx, db, speed, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Asked is the generation that a request has begun; nil when it has begun none.
func Asked(ctx context.Context, db pg.DB, speed SpeedLayer, request int64) (*Generation, error) {
	row, err := generation.Asked(ctx, db, request)
	if err != nil || row == nil {
		return nil, err
	}
	g, err := shown(ctx, db, speed, *row)
	return &g, err
}

// Trouble is the cause that stops the run of an open request; zero: none.
func Trouble(ctx context.Context, db pg.DB, request int64) (reason.Reason, error) {
	row, err := generation.Asked(ctx, db, request)
	if err == nil && row == nil {
		return ledger.Trouble(ctx, db, request)
	}
	if err != nil || row.State != generation.Building {
		return reason.Reason{}, err
	}
	return troubleOf(*row), nil
}

// troubleOf returns the cause that stops the run or the removal of a generation; zero: none.
func troubleOf(r generation.Row) reason.Reason {
	if r.State == generation.Building && r.Trouble.IsZero() && r.Paused && !r.Done("read") {
		return reason.BatchPaused(r.Ref())
	}
	return r.Trouble
}

// shown is a generation with the progress of its run, if it has one.
func shown(ctx context.Context, db pg.DB, speed SpeedLayer, r generation.Row) (Generation, error) {
	out := printed(r)
	if r.State != generation.Building {
		return out, nil
	}
	p, err := speed.BuildProgress(ctx, db, r.Ref(), r.Generation)
	if err == nil {
		out.Progress = progress(r, p)
	}
	return out, err
}

func printed(r generation.Row) Generation {
	out := Generation{
		Job: job.Name(r.Job), Version: job.Number(r.Number).String(), Generation: r.Generation, State: r.State, Base: r.Base,
		Rows:  r.Rows,
		Bytes: r.Bytes, Compared: r.Compared, Changed: r.Changed, Accepted: r.Accepted, CutAt: r.CutAt.UTC(),
		StartedAt: r.StartedAt.UTC(),
		LiveAt:    utc(r.LiveAt), EndedAt: utc(r.EndedAt), Timings: r.Timings, Error: r.Error.Text(), ErrorCode: r.Error.Code,
		ExitCode: r.ExitCode,
		Dropped:  r.DroppedAt != nil,
		Trouble:  troubleOf(r).Text(), TroubleCode: troubleOf(r).Code,
	}
	if out.Timings == nil {
		out.Timings = map[string]float64{}
	}
	if r.Request == nil {
		return out
	}
	took := r.Now.Sub(r.StartedAt).Seconds()
	if r.State != generation.Building {
		took = 0
		for _, s := range Steps() {
			took += r.Timings[s]
		}
	}
	out.Seconds = &took
	return out
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	in := t.UTC()
	return &in
}

func progress(r generation.Row, p job.BuildProgress) *Progress {
	out := &Progress{
		Step: "show", Segments: p.Segments, SegmentsDone: p.Done, Offsets: p.Offsets, OffsetsRemaining: p.Remaining,
		Records: p.Records, Bytes: p.Bytes,
	}
	for _, s := range Steps() {
		if !r.Done(s) {
			out.Step = s
			break
		}
	}
	began := r.StartedAt.Add(time.Duration(r.Timings["begin"] * float64(time.Second)))
	if read := p.Offsets - p.Remaining; out.Step == "read" && read > 0 {
		eta := r.Now.Sub(began).Seconds() / float64(read) * float64(p.Remaining)
		out.ETASeconds = &eta
	}
	return out
}
