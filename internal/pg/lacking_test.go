package pg_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestTheGrantsThatARoleLacksGiveItAllThatItLacks runs what is listed, apart from the hints in parentheses, and asks
// again.
func TestTheGrantsThatARoleLacksGiveItAllThatItLacks(t *testing.T) {
	t.Parallel()
	owner, dsn := pgtest.New(t)
	run := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			if _, err := owner.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(address.Path, "/")
	name := "Lacking " + database
	run("CREATE ROLE "+pg.Ident(name)+" LOGIN PASSWORD 'x'", "REVOKE TEMPORARY ON DATABASE "+pg.Ident(database)+
		" FROM PUBLIC")
	t.Cleanup(func() { run("DROP OWNED BY "+pg.Ident(name), "DROP ROLE "+pg.Ident(name)) })
	run("CREATE TABLE public.clicks__v0 ()")

	address.User = url.UserPassword(name, "x")
	pool := open(t, address.String(), "")
	role, grants, err := pg.LackingRights(t.Context(), pool)
	if err != nil || role != pg.Ident(name) || len(grants) != 5 {
		t.Fatalf("%s lacks %q (%v)", role, grants, err)
	}
	for _, grant := range grants {
		if strings.HasPrefix(grant, "GRANT ") && !strings.Contains(grant, "(") {
			run(grant)
		}
	}
	run("GRANT INSERT (job, number, verb, args, by) ON kappactl.request TO " + pg.Ident(name))
	if _, grants, err = pg.LackingRights(t.Context(), pool); err != nil || len(grants) > 0 {
		t.Errorf("after the grants %s lacks %q (%v)", role, grants, err)
	}
}
