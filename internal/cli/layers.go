package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/speedlayer"
)

// layersOf are the layers of a job's lambda versions.
func layersOf(ctx context.Context, db pg.DB, name job.Name) ([]batchlayer.Layers, error) {
	return batchlayer.LayersOf(ctx, db, &speedlayer.Store{}, name)
}

// layers are those of one version; nil when it is not lambda, or has ended.
func (c *client) layers(ctx context.Context, ref job.Ref) (*batchlayer.Layers, error) {
	found, err := layersOf(ctx, c.pool, ref.Job)
	for i := range found {
		if found[i].Version == ref.Number.String() {
			return &found[i], err
		}
	}
	return nil, err
}

// layersText is a part of status JOB: the layers of each version, with their generations.
func layersText(w io.Writer, style render.Style, found []batchlayer.Layers) error {
	for _, l := range found {
		if _, err := fmt.Fprintf(w, "\nlayers of %s\n%s\n", l.Version, strings.Join(layerLines(l), "\n")); err != nil {
			return err
		}
		if err := printGenerations(w, style, l.Generations); err != nil {
			return err
		}
	}
	return nil
}

// layerLines are what is live, what is kept, the run under way and the last one: one line each.
func layerLines(l batchlayer.Layers) []string {
	var lines []string
	if l.Live != nil {
		lines = append(lines, fmt.Sprintf("live: generation %d, %s, cut %s (%s ago), merged with %s", l.Live.Generation,
			l.Live.Kind(),
			render.Time(&l.Live.CutAt), render.Duration(secondsLong(*l.CutAgeSeconds)), epochsOf(l)))
	}
	if len(l.Kept) > 0 {
		lines = append(lines, "kept: "+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(l.Kept)), ", "), "[]"))
	}
	if l.Building != nil {
		lines = append(lines, "run: "+batchProgress(*l.Building)+"; "+batchTimings(l.Building.Timings))
		if l.Building.Trouble != "" {
			lines = append(lines, "it does not go on: "+l.Building.Trouble)
		}
	}
	if l.Last != nil {
		last := fmt.Sprintf("last run: generation %d, %s", l.Last.Generation, l.Last.State)
		if len(l.Last.Timings) > 0 {
			last += "; " + batchTimings(l.Last.Timings)
		}
		if l.Last.Error != "" {
			last += "; " + l.Last.Error
		}
		lines = append(lines, last)
	}
	return lines
}

// epochsOf are the epochs of the version's table that are merged with the live generation.
func epochsOf(l batchlayer.Layers) string {
	if l.Epochs == 1 {
		return fmt.Sprintf("epoch %d", l.Epoch)
	}
	return fmt.Sprintf("epochs %d to %d", l.Live.Generation, l.Epoch)
}

func secondsLong(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// layersFor returns the metrics of lambda versions.
func layersFor(ctx context.Context, db pg.DB) ([]httpapi.Layers, error) {
	found, err := layersOf(ctx, db, "")
	out := make([]httpapi.Layers, len(found))
	for i, l := range found {
		number, err := job.ParseNumber(l.Version)
		if err != nil {
			return nil, err
		}
		m := httpapi.Layers{
			Ref: job.Ref{Job: l.Job, Number: number}, CutAge: l.CutAgeSeconds, Kept: len(l.Kept), Epochs: l.Epochs,
			SpeedRows: l.SpeedRows,
		}
		if l.Live != nil {
			m.Live, m.Rows, m.Bytes = &l.Live.Generation, l.Live.Rows, l.Live.Bytes
		}
		if l.Last != nil {
			m.LastTook, m.LastFailed = l.Last.Seconds, new(l.Last.State == generation.Failed || l.Last.ExitCode != nil)
		}
		if g := l.Building; g != nil && g.Progress != nil && g.Seconds != nil {
			m.Run = &httpapi.Run{Seconds: *g.Seconds, Read: g.Progress.Share(), ETA: g.Progress.ETASeconds}
		}
		out[i] = m
	}
	return out, err
}
