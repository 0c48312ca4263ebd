package serving

import (
	"testing"

	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestHavingAndLimitApplyToMergedRows: no layer alone passes the condition, and the key that readers do not see still
// tells rows apart.
func TestHavingAndLimitApplyToMergedRows(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.View = l.View[1:] // without url
	l.Having = `s."views" >= 5`
	l.Top = `ORDER BY s."views" DESC NULLS LAST, s."url" COLLATE "C" ASC NULLS LAST LIMIT 2`
	v := layered(t, pool, l)
	const ten = "'2026-01-01 10:00Z'"
	exec(t, pool, "SET timezone = 'UTC'")
	exec(t, pool, hitRow("hits__v1_g0", ten, "'/a'", 3, "0")+hitRow("hits__v1_g0", ten, "'/b'", 4, "0")+hitRow("hits__v1_g0", ten, "'/c'", 3, "0")+
		hitRow("hits__v1", ten, "'/a'", 2, "0")+hitRow("hits__v1", ten, "'/c'", 6, "0")+hitRow("hits__v1", ten, "'/d'", 5, "0"))
	if got, want := served(t, pool, v), "(\"2026-01-01 10:00:00+00\",5,5.00)\n(\"2026-01-01 10:00:00+00\",9,9.00)"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := served(t, pool, v.Audited()), "(/a,\"2026-01-01 10:00:00+00\",5,5.00)\n(/c,\"2026-01-01 10:00:00+00\",9,9.00)"; got != want {
		t.Errorf("with the hidden key: got\n%s\nwant\n%s", got, want)
	}
	v.Layout = v.Layout.Whole()
	if got := text(t, pool, "SELECT count(*) FROM ("+store.Select(v)+") AS q"); got != "4" {
		t.Errorf("%s rows in all, want 4", got)
	}
}
