package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func TestChangesNameWhatTheHashLooksAt(t *testing.T) {
	base := func() *job.Spec {
		return &job.Spec{
			Job: "j", Mode: job.Kappa, Query: "SELECT a, count(*) AS n FROM source GROUP BY a",
			Source: job.Source{Topics: []string{"x", "y"}, Format: "json", Columns: []job.Column{{Name: "a", Type: "text"}}}, Replay: job.Replay{Start: "earliest"},
		}
	}
	for path, change := range map[string]func(*job.Spec){
		"mode":                 func(s *job.Spec) { s.Mode = job.Lambda },
		"source.topics":        func(s *job.Spec) { s.Source.Topics = []string{"x"} },
		"source.format":        func(s *job.Spec) { s.Source.Format = "csv" },
		"source.columns":       func(s *job.Spec) { s.Source.Columns[0].Type = "bigint" },
		"source.on_error":      func(s *job.Spec) { s.Source.OnError.Fail = true },
		"query":                func(s *job.Spec) { s.Query += " HAVING true" },
		"distinct_max":         func(s *job.Spec) { s.DistinctMax = 10 },
		"serve.key":            func(s *job.Spec) { s.Serve.Key = []string{"a"} },
		"serve.order_by":       func(s *job.Spec) { s.Serve.OrderBy = "a" },
		"replay.start":         func(s *job.Spec) { s.Replay.Start = "latest" },
		"replay.start.offsets": func(s *job.Spec) { s.Replay.Offsets = map[string]int64{"x/0": 1} },
	} {
		from, to := base(), base()
		change(to)
		got := job.Changes(from, to)
		if len(got) != 1 || got[0].Path != path || from.Hash(1) == to.Hash(1) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	same := base()
	same.Query = "SELECT a,\n  count(*) AS n -- of a\nFROM source GROUP BY a"
	same.Source.Topics = []string{"y", "x"}
	same.Serve.Where, same.KeepOld = "n > 1", 5
	if diff := cmp.Diff([]job.Change(nil), job.Changes(base(), same)); diff != "" || base().Hash(1) != same.Hash(1) {
		t.Error(diff)
	}
}
