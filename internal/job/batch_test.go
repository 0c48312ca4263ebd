package job_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestAJobWithoutBatchHasItsDefaults(t *testing.T) {
	s := parse(t, replace(t, plain, "query:", "mode: lambda\narchive: {location: file:///a}\nquery:"))
	if s.Batch != nil || s.Generations() != job.DefaultBatch() {
		t.Errorf("batch %+v, generations %+v", s.Batch, s.Generations())
	}
	s = parse(t, plain+"batch: {keep_generations: 5}\n")
	want := job.DefaultBatch()
	want.KeepGenerations = 5
	if s.Generations() != want {
		t.Errorf("generations %+v, want %+v", s.Generations(), want)
	}
}

func TestRelationsOfALambdaVersionAreNamedAfterItsTable(t *testing.T) {
	r := job.Ref{Job: "pageviews", Number: 7}
	for got, want := range map[string]string{
		r.Batch(): "pageviews__v7_batch", r.Member(0): "pageviews__v7_g0", r.Member(12): "pageviews__v7_g12",
		r.Pointer(): "pageviews__v7_gen", r.StagingOf(3): "pageviews__v7_g3_staging",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
