package speedlayer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// beginBuild opens a generation of the rig's version over the given ranges, with an empty table of its own.
func (r *rig) beginBuild(generation int, base *int, ranges, unread []job.Frozen) job.Build {
	r.t.Helper()
	b := job.Build{Version: at(r.ref, r.layout), Generation: generation, Base: base, Ranges: ranges, Unread: unread}
	args := refArgs(r.ref)
	args["generation"] = generation
	exec(r.t, r.pool, `INSERT INTO kappactl.generation (job, number, generation, state) VALUES (@job, @number, @generation, 'building')`, args)
	exec(r.t, r.pool, `CREATE TABLE public.`+r.ref.Member(generation)+` (LIKE public.`+r.ref.Table()+`)`, nil)
	exec(r.t, r.pool, `ALTER TABLE public.`+r.ref.Member(generation)+` ADD COLUMN IF NOT EXISTS `+pg.Ident(job.GenerationColumn)+` integer`, nil)
	for range 2 { // repeatable
		inTx(r.t, r.pool, func(tx *pg.Tx) error { return Store{}.BeginBuild(r.t.Context(), tx, b) })
	}
	return b
}

// finishBuild waits until the segments of a build are read, fills its table and returns what readers would see of it.
func (r *rig) finishBuild(b job.Build) []string {
	r.t.Helper()
	kafkatest.Until(r.t, "the generation is read", func() bool {
		p, err := Store{}.BuildProgress(r.t.Context(), r.pool, r.ref, b.Generation)
		if err != nil || p.Fault != "" {
			r.t.Fatalf("%+v, %v", p, err)
		}
		return p.Done == p.Segments
	})
	for range 2 { // repeatable
		if err := (Store{}).FillMember(r.t.Context(), r.pool, b); err != nil {
			r.t.Fatal(err)
		}
	}
	inTx(r.t, r.pool, func(tx *pg.Tx) error { return Store{}.EndBuild(r.t.Context(), tx, b.Version, b.Generation) })
	args := refArgs(r.ref)
	args["generation"] = b.Generation
	exec(r.t, r.pool, `UPDATE kappactl.generation SET state = 'kept' WHERE generation = @generation`, args)
	var seen []string
	inTx(r.t, r.pool, func(tx *pg.Tx) error { // the rows of the generation in place of the version's
		for _, sql := range []string{`TRUNCATE public.` + r.ref.Table(), `ALTER TABLE public.` + r.ref.Table() + ` ADD COLUMN IF NOT EXISTS ` + pg.Ident(job.GenerationColumn) + ` integer`} {
			if _, err := tx.Exec(r.t.Context(), sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(r.t.Context(), `INSERT INTO public.`+r.ref.Table()+` SELECT * FROM public.`+r.ref.Member(b.Generation))
		return err
	})
	seen = r.served()
	return seen
}

func TestAGenerationIsReadBesideALiveVersionFromScratchAndOnABase(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a rollup":              sums,
		"a rollup without keys": `SELECT count(*) AS n, sum(v) AS total FROM source WHERE v >= 0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 2, sql)
			r.produce(0, 0, 3000)
			r.produce(1, 3000, 2000)
			first := r.frozen(700)
			r.produce(0, 5000, 1500)
			all := r.frozen(700)
			r.startLive()
			stop := r.agent("kappa", nil)
			r.caughtUp()
			want := r.served()
			stop()

			exec(t, r.pool, `UPDATE kappactl.version SET layout = layout || '{"lambda": true}'`, nil)
			r.agent("a", nil)
			r.agent("b", nil)
			older := r.finishBuild(r.beginBuild(1, nil, first, nil))
			if cmp.Equal(want, older) {
				t.Error("the first generation has what came after its cut")
			}
			full := r.finishBuild(r.beginBuild(2, nil, all, nil))
			if diff := cmp.Diff(want, full); diff != "" {
				t.Errorf("from scratch: %s", diff)
			}
			base, since := 1, []job.Frozen{}
			for i, f := range all {
				f.From = first[i].To
				since = append(since, f)
			}
			if diff := cmp.Diff(full, r.finishBuild(r.beginBuild(3, &base, since, nil))); diff != "" {
				t.Errorf("on a base: %s", diff)
			}
			if left := r.one(`SELECT count(*) FROM kappactl.batch_segment`); left != 0 {
				t.Errorf("%d segments are left", left)
			}
			if n := r.one(`SELECT count(*) FROM pg_class WHERE relname LIKE '%staging'`); n != 0 {
				t.Errorf("%d staging tables are left", n)
			}
		})
	}
}

func TestAGenerationPassesOverWhatIsKnownToBeGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT count(*) AS n FROM source`)
	r.produce(0, 0, 1000)
	r.startLive()
	exec(t, r.pool, `UPDATE kappactl.version SET layout = layout || '{"lambda": true}'`, nil)
	stop := r.agent("a", nil)
	whole := r.frozen(0)
	gone := whole[0]
	gone.Range = job.Range{From: 200, To: 300}
	if diff := cmp.Diff([]string{"(900)"}, r.finishBuild(r.beginBuild(1, nil, whole, []job.Frozen{gone}))); diff != "" {
		t.Error(diff)
	}
	stop()
}

func TestAFillThatLacksASegmentOfTheGenerationIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT count(*) AS n FROM source`)
	r.produce(0, 0, 100)
	b := r.beginBuild(1, nil, r.frozen(50), nil)
	if err := (Store{}).FillMember(t.Context(), r.pool, b); err == nil {
		t.Error("a generation of which nothing is read was filled")
	}
	inTx(t, r.pool, func(tx *pg.Tx) error { return Store{}.EndBuild(t.Context(), tx, b.Version, 1) })
	if err := (Store{}).FillMember(t.Context(), r.pool, b); err == nil {
		t.Error("a generation that was ended was filled")
	}
}
