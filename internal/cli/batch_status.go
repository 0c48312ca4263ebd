package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/internal/render"
)

func runBatchStatus(ctx context.Context, o batchOptions) error {
	all, ref, err := o.generations(ctx)
	if err != nil {
		return err
	}
	l := batchlayer.NewLayers(ref, all, o.sys.Now())
	return o.result(l, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, strings.Join(layerLines(l), "\n"))
		return err
	})
}

// batchTimings is where the time of a run went, in the order of its steps.
func batchTimings(timings map[string]float64) string {
	var parts []string
	for _, step := range batchlayer.Steps() {
		if s, done := timings[step]; done {
			parts = append(parts, step+" "+render.Duration(secondsLong(s)))
		}
	}
	if len(parts) == 0 {
		return "just begun"
	}
	return strings.Join(slices.Clip(parts), ", ")
}
