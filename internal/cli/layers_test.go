package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

func TestStatusShowsTheLayersOfLambdaVersions(t *testing.T) {
	cut := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	l := batchlayer.NewLayers(job.Ref{Job: "pageviews", Number: 2}, []batchlayer.Generation{
		{
			Generation: 4, State: generation.Building, Base: new(2), CutAt: cut, Seconds: new(3.0), Timings: map[string]float64{"begin": 1},
			Progress: &batchlayer.Progress{Step: "read", Segments: 4, SegmentsDone: 1, Offsets: 400, OffsetsRemaining: 300, Records: 100, ETASeconds: new(6.0)},
		},
		{Generation: 3, State: generation.Failed, CutAt: cut, Seconds: new(9.0), Changed: new(int64(7)), Error: "7 of 10 keys differ"},
		{Generation: 2, State: generation.Live, CutAt: cut, Seconds: new(8.0), Rows: new(int64(10)), Bytes: new(int64(4096))},
		{Generation: 1, State: generation.Kept, CutAt: cut, Seconds: new(7.0)},
		{Generation: 0, State: generation.Retired, CutAt: cut, Dropped: true},
	}, cut.Add(time.Hour))
	var b strings.Builder
	if err := layersText(&b, render.Style{People: true}, []batchlayer.Layers{l}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nlayers of v2\nlive: generation 2, full, cut 2026-03-04T05:06:07Z (1h ago), merged with epochs 2 to 4\nkept: 1\n",
		"run: generation 4: read, 25%, 1 of 4 segments, 100 records, 6s left to read; begin 1s\n",
		"last run: generation 3, failed; 7 of 10 keys differ\n", "GENERATION", "4.1 kB",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "retired") {
		t.Errorf("a generation whose rows are gone:\n%s", b.String())
	}
}
