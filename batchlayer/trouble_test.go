package batchlayer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

func TestARunThatIsRefusedInTheMiddleEndsWithTheCause(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	r.agent("a")
	r.produce(500)
	r.caughtUp()
	r.exec(`CREATE TABLE public.sums__v1_g1 (mine integer)`)
	a := r.ask(ledger.BatchRun, ledger.Args{})
	if a.Code != job.ExitConflict || !strings.Contains(a.Text(), "sums__v1_g1") {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	if got := r.generations()[1]; got != generation.Failed {
		t.Errorf("generation 1 is %s", got)
	}
	r.run(ledger.Args{}) // the failed one is not in its way
	r.equal("after the next run")
	kafkatest.Until(t, "the list shows why generation 1 is not removed", func() bool {
		return strings.Contains(r.troubles()[1].Text(), "sums__v1_g1")
	})
	r.exec(`DROP TABLE public.sums__v1_g1`)
	r.dropped(1)
	if left := r.troubles(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// troubles are those of the version's generations, by number.
func (r *rig) troubles() map[int]reason.Reason {
	r.t.Helper()
	all, err := generation.List(r.t.Context(), r.pool, r.v.Ref)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[int]reason.Reason{}
	for _, g := range all {
		if why := troubleOf(g); !why.IsZero() {
			out[g.Generation] = why
		}
	}
	return out
}

func TestWhatKeepsARunFromGoingOnIsShownUntilItGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchRead && r.one(`SELECT max(generation) FROM kappactl.generation`) == "1" {
				r.exec(`ALTER TABLE public.sums__v1_g1 ADD CONSTRAINT full_disk CHECK (k IS NULL)`)
			}
		}
	})
	r.produce(500)
	r.caughtUp()
	shown := func(id int64, want string) {
		t.Helper()
		kafkatest.Until(t, "the run tells: "+want, func() bool {
			why, err := Trouble(t.Context(), r.pool, id)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(why.Text(), want)
		})
	}
	ends := func(id int64) {
		t.Helper()
		if a := r.answer(id); a.Code != job.ExitOK {
			t.Errorf("exit %d, %s", a.Code, a.Text())
		}
		if left := r.troubles(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	id := r.asked(ledger.BatchRun, ledger.Args{})
	shown(id, "full_disk")
	if !strings.Contains(r.troubles()[1].Text(), "it is tried again") {
		t.Errorf("%v", r.troubles())
	}
	st, err := status.New(r.pool, status.Config{}).Status(t.Context(), "sums")
	if err != nil || !strings.Contains(strings.Join(st.Warnings, "\n"), "generation 1 of sums/v1: ") {
		t.Errorf("status: %v, %v", st.Warnings, err)
	}
	r.exec(`ALTER TABLE public.sums__v1_g1 DROP CONSTRAINT full_disk`)
	ends(id)

	r.exec(`UPDATE kappactl.version SET paused_at = clock_timestamp()`)
	id = r.asked(ledger.BatchRun, ledger.Args{})
	shown(id, "is paused")
	r.exec(`UPDATE kappactl.version SET paused_at = NULL`)
	ends(id)

	err = r.pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM kappactl.version FOR UPDATE`); err != nil {
			return err
		}
		id = r.asked(ledger.BatchRun, ledger.Args{})
		shown(id, "locks of other sessions")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ends(id)
}

// TestAnIndexThatIsAskedForDuringARunIsOnItsGeneration: a change of serve.indexes is written while the run is at each of its steps.
func TestAnIndexThatIsAskedForDuringARunIsOnItsGeneration(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	points := []string{FaultBatchRead, FaultBatchIndexed, FaultBatchCompared}
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			newest := r.one(`SELECT max(generation) FROM kappactl.generation`)
			if n := slices.Index(points, point); n >= 0 && newest == fmt.Sprint(n+1) {
				r.exec(fmt.Sprintf(`UPDATE kappactl.version SET layout = jsonb_set(layout, '{indexes}', '%s')`, []string{`[["k"]]`, `[]`, `[["k"]]`}[n]))
			}
		}
	})
	r.produce(100)
	r.caughtUp()
	for n := range points {
		r.run(ledger.Args{})
		indexes := r.one(fmt.Sprintf(`SELECT count(*) FROM pg_index WHERE indrelid = 'public.sums__v1_g%d'::regclass AND NOT indisunique`, n+1))
		if want := []string{"1", "0", "1"}[n]; indexes != want {
			t.Errorf("at %s: generation %d has %s indexes, want %s", points[n], n+1, indexes, want)
		}
	}
}

func TestAnAgentThatWakesUpBeginsNothingOfWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	stop := r.agent("a")
	r.produce(500)
	r.caughtUp()
	r.run(ledger.Args{})
	stop()
	runner := New(Deps{Pool: r.pool, Speed: &speedlayer.Store{}, Serving: serving.New(serving.Config{})}, Config{})
	v, err := runner.load(t.Context(), r.v.Ref)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO kappactl.generation (job, number, generation, state) VALUES ('sums', 1, 2, 'failed')`)
	late := &build{Runner: runner, v: v, row: generation.Row{Job: "sums", Number: 1, Generation: 2}}
	nothing := func() {
		t.Helper()
		if err := late.begin(t.Context()); !errors.Is(err, generation.ErrMoved) {
			t.Error(err)
		}
		if n := r.one(`SELECT count(*) FROM pg_class WHERE relname LIKE 'sums\_\_v1\_g2%'`); n != "0" {
			t.Errorf("%s tables were made", n)
		}
	}
	nothing()
	r.exec(`UPDATE kappactl.generation SET state = 'building' WHERE generation = 2`)
	r.exec(`UPDATE kappactl.version SET phase = 'retiring'`)
	nothing()
}
