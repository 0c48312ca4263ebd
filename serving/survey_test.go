package serving

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestWhatPeopleAddedToAVersionsTableIsListed: all of it and nothing that is ours.
func TestWhatPeopleAddedToAVersionsTableIsListed(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Indexes = [][]string{{"url"}}
	made(t, pool, ref(1), l, "/a")
	switched(t, pool, to(1, l, nil))
	additions := func() []string {
		t.Helper()
		list, err := store.Additions(t.Context(), pool, ref(1), public, l)
		must(t, err)
		out := []string{}
		for _, a := range list {
			out = append(out, a.Kind+": "+a.What)
		}
		return out
	}
	if got := additions(); len(got) != 0 {
		t.Errorf("of an untouched table: %q", got)
	}
	reader := newRole(t, pool, "")
	exec(t, pool, `CREATE INDEX by_hand ON public.hits__v1 (views); CREATE UNIQUE INDEX "By Hand" ON public.hits__v1 (lower(url), hour) WHERE views > 1;
		GRANT SELECT, UPDATE ON public.hits__v1 TO `+reader+`; GRANT SELECT ON public.hits__v1 TO PUBLIC; GRANT SELECT (url), UPDATE (views) ON public.hits__v1 TO `+reader+`;
		ALTER TABLE public.hits__v1 ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON public.hits__v1 USING (url <> 'secret');
		CREATE FUNCTION public.noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER noting BEFORE INSERT ON public.hits__v1 FOR EACH ROW EXECUTE FUNCTION public.noted();
		ALTER TABLE public.hits__v1 ADD COLUMN "My note" text, ADD CONSTRAINT positive CHECK (views > 0), ADD PRIMARY KEY (hour, url);
		CREATE STATISTICS public.together ON url, hour FROM public.hits__v1`)
	want := []string{
		`column: "My note" text`,
		`constraint: hits__v1_pkey PRIMARY KEY (hour, url)`, `constraint: positive CHECK ((views > 0))`,
		`grant: SELECT (url) to ` + reader, `grant: SELECT to PUBLIC`, `grant: SELECT to ` + reader, `grant: UPDATE (views) to ` + reader, `grant: UPDATE to ` + reader,
		`index: CREATE INDEX by_hand ON public.hits__v1 USING btree (views)`,
		`index: CREATE UNIQUE INDEX "By Hand" ON public.hits__v1 USING btree (lower(url), hour) WHERE (views > 1)`,
		`policy: mine`, `policy: row level security is enabled`, `statistics: together`,
		`trigger: CREATE TRIGGER noting BEFORE INSERT ON public.hits__v1 FOR EACH ROW EXECUTE FUNCTION noted()`,
	}
	got := additions()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWhatReadsTheViewIsListed with what stands on what it reads left to itself.
func TestWhatReadsTheViewIsListed(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `CREATE VIEW public.report AS SELECT url FROM public.hits_by_url; CREATE VIEW public.nested AS SELECT * FROM public.report;
		CREATE MATERIALIZED VIEW public.stored AS SELECT * FROM public.hits_by_url;
		CREATE FUNCTION public.first_of() RETURNS SETOF public.hits_by_url LANGUAGE sql AS 'SELECT * FROM public.hits_by_url LIMIT 1';
		CREATE FUNCTION public.total() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM public.hits_by_url; END;
		CREATE VIEW public.other AS SELECT url FROM public.hits__v1`)
	got, err := store.Readers(t.Context(), pool, public)
	must(t, err)
	want := []string{"function first_of()", "function total()", "materialized view stored", "view report"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
