package serving

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestAFlipGivesNoAccess: of a view that checks its reader's rights, the table of the next version is opened to the roles that
// could read through the view, however they could, and to those that the job file names for the first time.
func TestAFlipGivesNoAccess(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	both, viewOnly, tableOnly := newRole(t, pool, ""), newRole(t, pool, ""), newRole(t, pool, "")
	byMembership, named := newRole(t, pool, ""), newRole(t, pool, "")
	for n := range 4 {
		made(t, pool, ref(job.Number(n+1)), hits(), "/a")
	}
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `ALTER VIEW public.hits_by_url SET (security_invoker = on); GRANT SELECT ON public.hits_by_url TO `+both+`, `+viewOnly+`;
		GRANT SELECT ON public.hits__v1 TO `+both+`, `+tableOnly+`; GRANT `+both+` TO `+byMembership)
	reads := func(what string, want ...string) {
		t.Helper()
		for _, role := range []string{both, viewOnly, byMembership, tableOnly, named} {
			_, err := pool.Exec(t.Context(), "SET ROLE "+role+"; SELECT * FROM public.hits_by_url; RESET ROLE")
			if may := slices.Contains(want, role); (err == nil) != may {
				t.Errorf("%s: a role that may read: %t, got %v", what, may, err)
			}
		}
	}
	reads("before", both, byMembership)
	contract = switched(t, pool, to(2, hits(), contract))
	reads("after a flip", both, byMembership)
	exec(t, pool, `DROP VIEW public.hits_by_url`)
	contract = switched(t, pool, to(3, hits(), contract))
	reads("made again", both, byMembership)
	next := to(4, hits(), contract)
	next.Grant = map[string][]string{"select": {named}}
	switched(t, pool, next)
	reads("named by the file", both, byMembership, named)
}

func TestAFlipAwayFromRowLevelSecurityIsRefused(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `ALTER VIEW public.hits_by_url SET (security_invoker = on);
		ALTER TABLE public.hits__v1 ENABLE ROW LEVEL SECURITY`)
	flip := func() error {
		_, err := trySwitch(t.Context(), pool, to(2, hits(), contract))
		return err
	}
	var refusal *job.Refusal
	if err := flip(); !errors.As(err, &refusal) || refusal.Code != job.ExitConflict || !strings.Contains(refusal.Next, "ENABLE ROW LEVEL SECURITY") {
		t.Errorf("got %v", err)
	}
	exec(t, pool, `ALTER TABLE public.hits__v2 ENABLE ROW LEVEL SECURITY`)
	if err := flip(); err != nil {
		t.Error(err)
	}
}
