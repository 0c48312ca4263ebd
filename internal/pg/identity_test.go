package pg_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestACopyOfAControlSchemaHasAnotherIdentity, and the schema itself the same each time.
func TestACopyOfAControlSchemaHasAnotherIdentity(t *testing.T) {
	t.Parallel()
	identity := func(pool *pg.Pool) string {
		t.Helper()
		out, err := pg.Identity(t.Context(), pool)
		if err != nil || len(out) != 8 {
			t.Fatalf("%q (%v)", out, err)
		}
		return out
	}
	one, _ := pgtest.New(t)
	copied, _ := pgtest.New(t) // both are copies of one template, as a restored dump is
	if a, b := identity(one), identity(one); a != b {
		t.Errorf("%s, then %s", a, b)
	}
	if identity(one) == identity(copied) {
		t.Error("two databases have one identity")
	}
}
