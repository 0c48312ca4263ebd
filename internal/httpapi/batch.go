package httpapi

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kappactl/kappactl/internal/job"
)

// Layers are the layers of one lambda version. nil values are unknown, or do not apply, and are not exported.
type Layers struct {
	Ref        job.Ref
	Live       *int     // number of the live generation
	CutAge     *float64 // seconds since its cut
	Rows       *int64   // of the live generation, about
	Bytes      *int64
	Kept       int    // generations that readers can be shown again
	Epochs     int    // that are read beside the live generation
	SpeedRows  *int64 // of the version's table, about
	Run        *Run   // under way
	LastTook   *float64
	LastFailed *bool
}

// Run is a batch run under way.
type Run struct {
	Seconds float64 // since it began
	Read    float64 // part of the offsets that is read, from 0 to 1
	ETA     *float64
}

// layers exports the metrics of lambda versions.
func (c collector) layers(ctx context.Context, out chan<- prometheus.Metric) {
	if c.s.deps.Layers == nil {
		return
	}
	found, err := c.s.deps.Layers(ctx)
	if err != nil {
		return // database_up reports it
	}
	for _, l := range found {
		gauge := func(name, help string, value *float64) {
			if value != nil {
				out <- prometheus.MustNewConstMetric(perVersion("batch_"+name, help), prometheus.GaugeValue, *value,
					string(l.Ref.Job), l.Ref.Number.String())
			}
		}
		kept, epochs, running := float64(l.Kept), float64(l.Epochs), 0.0
		if l.Run != nil {
			running = 1
			gauge("run_age_seconds", "Time since the batch run under way began.", &l.Run.Seconds)
			gauge("run_read_ratio", "Part of its offsets that the batch run under way has read.", &l.Run.Read)
			gauge("run_eta_seconds", "Time until the batch run under way has read everything.", l.Run.ETA)
		}
		gauge("generation", "Number of the live generation.", number(l.Live))
		gauge("cut_age_seconds", "Age of the live generation's cut.", l.CutAge)
		gauge("rows", "Rows of the live generation, about.", number(l.Rows))
		gauge("bytes", "Bytes of the live generation and its indexes.", number(l.Bytes))
		gauge("kept_generations", "Generations beside the live one that readers can be shown again.", &kept)
		gauge("epochs", "Epochs of the speed layer that readers merge with the live generation.", &epochs)
		gauge("speed_rows", "Rows of the speed layer, of all its epochs, about.", number(l.SpeedRows))
		gauge("running", "1 while a batch run is under way.", &running)
		gauge("last_run_seconds", "Duration of the last batch run that has ended.", l.LastTook)
		if l.LastFailed != nil {
			failed := 0
			if *l.LastFailed {
				failed = 1
			}
			gauge("last_run_failed", "1 when the last batch run failed, was refused or cancelled.", number(&failed))
		}
	}
}

func number[T int | int64](n *T) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}
