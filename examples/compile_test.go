package examples_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

func TestEveryExampleCompiles(t *testing.T) {
	for _, path := range files(t, "*.yaml", 5) {
		t.Run(path, func(t *testing.T) {
			s, err := job.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := query.Compile(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			shape, isRow := map[string]job.Shape{"orders.yaml": job.Rows, "customers.yaml": job.Latest}[path]
			switch {
			case isRow && c.Layout.Shape != shape:
				t.Errorf("shape %s, want %s", c.Layout.Shape, shape)
			case !isRow && (c.Layout.Shape != job.Rollup || len(c.Layout.Keys) != 2 || !c.Layout.Keys[0].Time):
				t.Errorf("want a rollup with the time key first, got %+v", c.Layout)
			}
		})
	}
}

func TestEveryRefusedExampleIsRefusedInItsQueryWithACure(t *testing.T) {
	for _, path := range files(t, "refused/*.yaml", 8) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			s, err := job.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = query.Compile(t.Context(), s)
			var ps job.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("got %v, want problems", err)
			}
			first, _ := s.Where("query")
			for _, p := range ps {
				if p.Line <= first || p.Column < 1 || p.Dialect != job.DuckDBSQL || p.Cure == "" {
					t.Errorf("no place in the query, no dialect or no cure: %s", p)
				}
			}
		})
	}
}
