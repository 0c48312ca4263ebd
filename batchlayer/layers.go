package batchlayer

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Layers are the layers of a lambda version: its generations, and the epochs of its table. Its JSON is documented and
// only ever grows.
type Layers struct {
	Job           job.Name    `json:"job"`
	Version       string      `json:"version"`
	Live          *Generation `json:"live"`
	CutAgeSeconds *float64    `json:"cut_age_seconds"` // of the live generation
	Building      *Generation `json:"building"`        // null: no run is under way
	Last          *Generation `json:"last"`            // the newest run that has ended
	Kept          []int       `json:"kept"`            // that readers can be shown again
	Epoch         int         `json:"epoch"`           // of the rows that are written now
	// Epochs is how many epochs of the table are read beside the live generation.
	Epochs int `json:"epochs"`
	// OldestEpoch is the oldest epoch of which rows are kept.
	OldestEpoch int `json:"oldest_epoch"`
	// SpeedRows is about how many rows the table has, of all epochs; null when the server does not know.
	SpeedRows *int64 `json:"speed_rows"`
	// Generations are those whose rows are there, the newest first.
	Generations []Generation `json:"generations"`
}

// LayersOf are the layers of the lambda versions that have not ended, of one job or, without a name, of all: by job,
// the newest version first.
func LayersOf(ctx context.Context, db pg.DB, speed SpeedLayer, name job.Name) ([]Layers, error) {
	rows, err := generation.Current(ctx, db, name)
	if err != nil {
		return nil, err
	}
	sizes, err := generation.SpeedRows(ctx, db, name)
	if err != nil {
		return nil, err
	}
	out := []Layers{}
	for len(rows) > 0 {
		of := rows[0].Ref()
		n := 0
		for n < len(rows) && rows[n].Ref() == of {
			n++
		}
		all, err := showAll(ctx, db, speed, rows[:n])
		if err != nil {
			return nil, err
		}
		l := NewLayers(of, all, rows[0].Now)
		l.SpeedRows = sizes[of]
		out, rows = append(out, l), rows[n:]
	}
	return out, nil
}

// NewLayers are the layers of a version at a moment of the database's clock. Its generations come the newest first.
func NewLayers(ref job.Ref, all []Generation, now time.Time) Layers {
	out := Layers{Job: ref.Job, Version: ref.Number.String(), Kept: []int{}, Generations: []Generation{}}
	for i := range all {
		g := &all[i]
		out.Epoch = max(out.Epoch, g.Generation)
		switch g.State {
		case generation.Live:
			out.Live = g
			age := now.Sub(g.CutAt).Seconds()
			out.CutAgeSeconds = &age
		case generation.Building:
			out.Building = g
		case generation.Kept:
			out.Kept = append(out.Kept, g.Generation)
		case generation.Retired, generation.Failed:
		}
		if g.State.Shows() {
			out.OldestEpoch = g.Generation
		}
		if g.State != generation.Building && g.Seconds != nil && out.Last == nil {
			out.Last = g
		}
		if !g.Dropped {
			out.Generations = append(out.Generations, *g)
		}
	}
	if out.Live != nil {
		out.Epochs = out.Epoch - out.Live.Generation + 1
	}
	return out
}
