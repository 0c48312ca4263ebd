package speedlayer

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/serving"
)

func TestExpiredRowsAreHiddenAtOnceAndDeletedLater(t *testing.T) {
	for _, typ := range []string{"timestamp with time zone", "timestamp without time zone", "date"} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			l := counts()
			l.Keys[0].Type = typ
			l.Keep = &job.Keep{Column: "hour", Type: typ, For: 72 * time.Hour}
			l.View = []job.ViewColumn{{Name: "user", Type: "text", Finish: `s."user"`, Key: true}}
			pool, ref := fresh(t, l, job.Live)
			exec(t, pool, `INSERT INTO public.pageviews__v1 (hour, "user", n) SELECT now() - interval '100 days', 'old' || i, 1 FROM generate_series(1, 6000) AS i`, nil)
			exec(t, pool, `INSERT INTO public.pageviews__v1 (hour, "user", n) VALUES (now() - interval '1 day', 'new', 1), (NULL, 'none', 1), ('-infinity', 'ever', 1)`, nil)
			shown := func() []string {
				out := lines(t, pool, serving.New(serving.Config{}).Select(at(ref, l)))
				slices.Sort(out)
				return out
			}
			if diff := cmp.Diff([]string{"(new)", "(none)"}, shown()); diff != "" {
				t.Error(diff)
			}
			other := l
			other.Keep = &job.Keep{Column: "hour", Type: typ, For: time.Hour}
			if n, err := (Store{}).Expire(t.Context(), pool, at(ref, other)); err != nil || n != 0 {
				t.Errorf("a layout that is not the version's deleted %d rows: %v", n, err)
			}
			n, err := Store{}.Expire(t.Context(), pool, at(ref, l))
			if err != nil || n != 6001 {
				t.Errorf("deleted %d rows: %v", n, err)
			}
			if diff := cmp.Diff([]string{"(new)", "(none)"}, shown()); diff != "" {
				t.Error(diff)
			}
			if got := lines(t, pool, `SELECT count(*) FROM public.pageviews__v1`)[0]; got != "(2)" {
				t.Errorf("%s rows are left", got)
			}
			if got := lines(t, pool, `SELECT expired_before < now() - interval '71 hours' AND expired_before > now() - interval '73 hours' AS noted FROM kappactl.version`)[0]; got != "(t)" {
				t.Errorf("noted: %s", got)
			}
		})
	}
}
