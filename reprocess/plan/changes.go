package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// changes names the keys of the job file in which two specs of one hash differ, in the order of the file. All of them
// are applied without a replay.
func changes(before, after *job.Spec) ([]string, error) {
	after, err := stored(after)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, part := range []struct {
		key     string
		was, is any
	}{
		{"team", before.Team, after.Team},
		{"source.on_error", before.Source.OnError, after.Source.OnError},
		{"serve.columns", before.Serve.Columns, after.Serve.Columns},
		{"serve.where", before.Serve.Where, after.Serve.Where},
		{"serve.indexes", before.Serve.Indexes, after.Serve.Indexes},
		{"serve.grant", before.Serve.Grant, after.Serve.Grant},
		{"serve.keep", before.Serve.Keep, after.Serve.Keep},
		{"archive", before.Archive, after.Archive},
		{"batch", before.Batch, after.Batch},
		{"program", before.Program, after.Program},
		{"checks", before.Checks, after.Checks},
		{"replay.workers", before.Replay.Workers, after.Replay.Workers},
		{"replay.max_rate", before.Replay.MaxRate, after.Replay.MaxRate},
		{"live.every", before.Live.Every, after.Live.Every},
		{"ready", before.Ready, after.Ready},
		{"promote", before.Promote, after.Promote},
		{"keep_old", before.KeepOld, after.KeepOld},
		{"auto_retire", before.AutoRetire, after.AutoRetire},
		{"tests", before.Tests, after.Tests},
	} {
		if !reflect.DeepEqual(part.was, part.is) {
			out = append(out, part.key)
		}
	}
	return out, nil
}

// stored is a spec as it comes back from version.spec.
func stored(s *job.Spec) (*job.Spec, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	var out job.Spec
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decode spec: %w", err)
	}
	return &out, nil
}

// sameLayout compares a stored layout with one that comes from compiling.
func sameLayout(before, after job.Layout) (bool, error) {
	var texts [2]string
	for i, l := range []job.Layout{before, after} {
		text, err := json.Marshal(l)
		if err != nil {
			return false, fmt.Errorf("encode layout: %w", err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1], nil
}

// reshapes reports whether a change is about what readers see, which the controller writes, and not only about how a
// version is looked after.
func reshapes(changed []string) bool {
	return slices.ContainsFunc(changed, func(key string) bool {
		return key == ledger.ViewChanged || strings.HasPrefix(key, "serve.")
	})
}
