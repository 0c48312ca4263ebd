package reprocess_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// removal is the plan of a drop.
func (w *world) removal(keepView bool) (plan.Removal, error) {
	return w.store.Removal(w.t.Context(), "counts", keepView, w.views)
}

// left counts what is there of the job: relations, then rows of the control tables.
func (w *world) left() (relations, rows int) {
	w.t.Helper()
	err := w.pool.QueryRow(w.t.Context(), `SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'public' AND c.relkind IN ('r', 'v') AND c.relname ~ '^counts'),
		(SELECT count(*) FROM kappactl.job) + (SELECT count(*) FROM kappactl.version) + (SELECT count(*) FROM kappactl.deployment)
			+ (SELECT count(*) FROM kappactl.position) + (SELECT count(*) FROM kappactl.segment) + (SELECT count(*) FROM kappactl.observation)`).
		Scan(&relations, &rows)
	if err != nil {
		w.t.Fatal(err)
	}
	return relations, rows
}

func TestDropRemovesEverythingOfAJobButItsHistory(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.finish(w.stage("ccc").Deployment, "", job.ExitOK)
	plan, err := w.removal(false)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Drops) != 3 || len(plan.Aborts) != 1 || len(plan.Groups) != 3 || !plan.DropsView || plan.Live == nil || *plan.Live != "v2" {
		t.Errorf("%+v", plan)
	}
	w.must(0, ledger.Drop, ledger.Args{})
	if relations, rows := w.left(); relations != 0 || rows != 0 {
		t.Errorf("%d relations and %d rows are left", relations, rows)
	}
	events, err := w.store.History(t.Context(), "counts", nil, 100)
	if err != nil || events[len(events)-1].Kind != "dropped" || events[len(events)-1].Version != nil {
		t.Errorf("%+v %v", events, err)
	}
	if d, err := w.store.Dropped(t.Context(), "counts"); err != nil || d == nil || d.By != "ann" {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := w.store.Ask(t.Context(), ledger.Request{Job: "counts", Verb: ledger.Drop}); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
	s := w.stage("ddd")
	if s.Number != 4 {
		t.Errorf("the next version is %s: numbers go on", s.Number)
	}
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
}

func TestDropKeepsTheViewWhenAsked(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.sql(`CREATE VIEW public.report AS SELECT n FROM public.counts`)
	w.must(0, ledger.Drop, ledger.Args{KeepView: true})
	if relations, rows := w.left(); relations != 2 || rows != 0 || w.shown() != 100 {
		t.Errorf("%d relations and %d rows are left; the view shows %d", relations, rows, w.shown())
	}
	_, err := w.tryStage("aaa")
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != job.ExitConflict {
		t.Fatal(err)
	}
	has(t, r.Cause, "public.counts is a view", "--keep-view")
}

func TestDropRefusesWhatIsInUse(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	refused := func(keepView bool, words ...string) {
		t.Helper()
		_, err := w.removal(keepView)
		a := w.ask(0, ledger.Drop, ledger.Args{KeepView: keepView})
		var r *job.Refusal
		if !errors.As(err, &r) || a.Code != job.ExitConflict || r.Cause != a.Text() || r.Next != a.Next {
			t.Fatalf("the plan says %v, the agent %+v", err, a)
		}
		has(t, a.Text()+" "+a.Next, words...)
		if w.live() != "v2" || w.shown() != 100 {
			t.Errorf("live is %s, the view shows %d", w.live(), w.shown())
		}
	}
	w.sql(`CREATE VIEW public.report AS SELECT n FROM public.counts`)
	refused(false, "view report", "kappactl drop counts --keep-view")
	w.sql(`DROP VIEW public.report; CREATE VIEW public.old AS SELECT n FROM public.counts__v1`)
	refused(false, "counts__v1", "view old")
	refused(true, "counts__v1", "view old")
	w.sql(`DROP VIEW public.old`)
	w.setIdle(3, true)
	w.stage("ccc")
	refused(false, "is rolling out", "kappactl abort counts v3")
}

func TestATableThatCannotBeDroppedIsSaidAndTheDropGoesOnLater(t *testing.T) {
	w := newWorld(t, 100)
	w.config.DropPatience = 100 * time.Millisecond
	firstLiveFor(t, w)
	w.sql(`CREATE FUNCTION public.stay() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_name = 'counts__v1') THEN RAISE EXCEPTION 'not today'; END IF; END $$;
		CREATE EVENT TRIGGER stay ON sql_drop EXECUTE FUNCTION public.stay()`)
	id, err := w.store.Ask(t.Context(), ledger.Request{Job: "counts", Verb: ledger.Drop})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.answer(id); a.Code != job.ExitConflict || !strings.Contains(a.Text(), "not today") {
		t.Errorf("%+v", a)
	}
	if _, err := w.tryStage("bbb"); err == nil || !strings.Contains(err.Error(), "being dropped") {
		t.Error(err)
	}
	w.sql(`DROP EVENT TRIGGER stay`)
	w.await("the drop", func() bool { // the old refusal is there until the next try
		a := w.ask(0, ledger.Drop, ledger.Args{})
		if a.Code != job.ExitOK && !strings.Contains(a.Text(), "not today") {
			t.Fatalf("%+v", a)
		}
		return a.Code == job.ExitOK
	})
	if relations, rows := w.left(); relations != 0 || rows != 0 {
		t.Errorf("%d relations and %d rows are left", relations, rows)
	}
}

func TestAnotherAgentFinishesADropThatDiedAtAnyStep(t *testing.T) {
	for _, point := range []string{reprocess.FaultDropMarked, reprocess.FaultRetireDropped, reprocess.FaultDropCleaned} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t, 100, 50)
			stop := w.run(1, nil)
			w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
			w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
			stop()
			w.alone = true
			defer w.worker()()
			var id int64
			w.crash(point, func() {
				var err error
				if id, err = w.store.Ask(t.Context(), ledger.Request{Job: "counts", Verb: ledger.Drop}); err != nil {
					t.Fatal(err)
				}
			})
			if a := w.answer(id); a.Code != job.ExitOK {
				t.Errorf("%+v", a)
			}
			if relations, rows := w.left(); relations != 0 || rows != 0 {
				t.Errorf("%d relations and %d rows are left", relations, rows)
			}
			var drops int
			if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.event WHERE kind IN ('drop', 'dropped')`, pgx.NamedArgs{}).Scan(&drops); err != nil || drops != 2 {
				t.Errorf("%d events of the drop: %v", drops, err)
			}
		})
	}
}
