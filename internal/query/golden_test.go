package query

import (
	"fmt"
	"strings"
	"testing"
)

func TestRollupsAreTakenApartAsInTheGoldenFile(t *testing.T) {
	var got strings.Builder
	for _, q := range queriesOf(t, "rollups.sql") {
		c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(q.text)+distinctMax))
		if err != nil {
			t.Errorf("%s: %v", q.name, err)
			continue
		}
		fmt.Fprintf(&got, "== %s\nfields  %s\nPARTIAL %s\noracle  %s\n", q.name, strings.Join(c.Fields, ", "), c.Partial, c.Oracle)
		for _, k := range c.Layout.Keys {
			fmt.Fprintf(&got, "key     %s %s%s\n", k.Name, k.Type, map[bool]string{true: ", time"}[k.Time])
		}
		for _, s := range c.Layout.States {
			fmt.Fprintf(&got, "state   %s %s\n  MERGE %s\n  or    %s\n", s.Name, s.Type, s.Combine, s.Aggregate)
		}
		if c.Layout.Having+c.Layout.Top != "" {
			fmt.Fprintf(&got, "HAVING  %s\nTOP     %s\n", c.Layout.Having, c.Layout.Top)
		}
		for _, v := range c.Layout.View {
			exactly := map[bool]string{true: "exact", false: "approximate"}[v.Exact]
			fmt.Fprintf(&got, "FINISH  %s %s, stored as %s, %s\n        %s\n", v.Name, v.Type, v.StoredAs, exactly, v.Finish)
		}
	}
	golden(t, "rollups.golden", got.String())
}
