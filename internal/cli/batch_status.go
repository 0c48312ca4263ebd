package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// batchStatus is the batch layer of a version as batch status prints it.
type batchStatus struct {
	Job           job.Name               `json:"job"`
	Version       string                 `json:"version"`
	Live          *batchlayer.Generation `json:"live"`
	CutAgeSeconds *float64               `json:"cut_age_seconds"` // of the live generation
	Building      *batchlayer.Generation `json:"building"`        // null: no run is under way
	Last          *batchlayer.Generation `json:"last"`            // the newest run that has ended
	Kept          []int                  `json:"kept"`            // that readers can be shown again
}

func newBatchLayerStatus(ref job.Ref, all []batchlayer.Generation, now time.Time) batchStatus {
	out := batchStatus{Job: ref.Job, Version: ref.Number.String(), Kept: []int{}}
	for i := range all {
		g := &all[i]
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
		if g.State != generation.Building && g.Seconds != nil && out.Last == nil {
			out.Last = g
		}
	}
	return out
}

func runBatchStatus(ctx context.Context, o batchOptions) error {
	all, ref, err := o.generations(ctx)
	if err != nil {
		return err
	}
	s := newBatchLayerStatus(ref, all, o.sys.Now())
	return o.result(s, s.print)
}

func (s batchStatus) print(w io.Writer) error {
	var lines []string
	if s.Live != nil {
		lines = append(lines, fmt.Sprintf("live: generation %d, %s, cut %s (%s ago)", s.Live.Generation, kindOf(*s.Live), render.Time(&s.Live.CutAt),
			render.Duration(time.Duration(*s.CutAgeSeconds*float64(time.Second)))))
	}
	if len(s.Kept) > 0 {
		lines = append(lines, "kept: "+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Kept)), ", "), "[]"))
	}
	if s.Building != nil {
		lines = append(lines, "run: "+batchProgress(*s.Building)+"; "+batchTimings(s.Building.Timings))
	}
	if s.Last != nil {
		last := fmt.Sprintf("last run: generation %d, %s; %s", s.Last.Generation, s.Last.State, batchTimings(s.Last.Timings))
		if s.Last.Error != "" {
			last += "; " + s.Last.Error
		}
		lines = append(lines, last)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// batchTimings is where the time of a run went, in the order of its steps.
func batchTimings(timings map[string]float64) string {
	var parts []string
	for _, step := range batchlayer.Steps() {
		if s, done := timings[step]; done {
			parts = append(parts, step+" "+render.Duration(time.Duration(s*float64(time.Second))))
		}
	}
	if len(parts) == 0 {
		return "just begun"
	}
	return strings.Join(slices.Clip(parts), ", ")
}
