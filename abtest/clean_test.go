package abtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func (r *rig) count(sql string) (n int) {
	r.t.Helper()
	if err := r.pool.QueryRow(r.t.Context(), sql).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// The subjects of a run are deleted 90 days after its end, and what was decided stays.
func TestSubjectsOfOldRunsAreDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 2 {
		r.rewarded(job.Experiment{Reward: bernoulli(job.RewardSource{})})
		r.exposed("v1", 0, "ann", "ben")
		r.reports(Reward{"1", "ann", 1, time.Now()}, Reward{"2", "zoe", 1, time.Now()})
		r.ok(ledger.ABStop, ledger.Args{})
	}
	due := `SELECT count(*) FROM kappactl.experiment r WHERE ` + needsCleaning
	if r.count(due) != 0 {
		t.Error("a run that has just ended is cleaned")
	}
	r.exec(`UPDATE kappactl.experiment SET ended_at = now() - interval '91 days' WHERE run = 1`)
	if r.count(due) != 1 {
		t.Error("an old run is not cleaned")
	}
	if err := r.run.Clean(t.Context(), int64(r.count(`SELECT id FROM kappactl.experiment WHERE run = 1`)), 0); err != nil {
		t.Fatal(err)
	}
	if r.count(due) != 0 || r.count(`SELECT count(*) FROM kappactl.assignment`) != 2 || r.count(`SELECT count(*) FROM kappactl.reward`) != 2 ||
		r.count(`SELECT count(*) FROM kappactl.decision WHERE run = 1`) != 2 {
		t.Error("the subjects of run 1 are left, or more than they were deleted")
	}
	n, err := Store{}.Forget(t.Context(), r.pool, "orders", "ann", "ann")
	if err != nil || n != 1 || r.count(`SELECT count(*) FROM kappactl.reward WHERE subject = 'ann'`) != 0 {
		t.Errorf("%d forgotten, %v", n, err)
	}
}

// dies ends the agent's connection between the rows of a run and its view.
type dies struct {
	Serving
	t *testing.T
}

func (d dies) Split(ctx context.Context, tx *pg.Tx, _ job.ViewSplit, _ func(json.RawMessage) error) error {
	var routes int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM kappactl.route`).Scan(&routes); err != nil || routes != 1 {
		d.t.Errorf("%d routes are written before the view: %v", routes, err)
	}
	_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
	return err
}

// An agent that dies between the route and the view leaves neither; another one starts the run.
func TestAnotherAgentStartsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, err := ledger.NewStore(r.pool).Ask(t.Context(), ledger.Request{Job: "orders", Verb: ledger.ABStart, Args: arms(0, 1), By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	first := *r.run
	first.Serving = dies{r.run.Serving, t}
	_ = first.Answer(t.Context(), id, 0) // whatever it returns: it is dead
	if n := r.count(`SELECT (SELECT count(*) FROM kappactl.route) + (SELECT count(*) FROM kappactl.experiment)`); n != 0 {
		t.Fatalf("%d rows of half a run are left", n)
	}
	if n := r.count(`SELECT count(*) FROM kappactl.request WHERE answered_at IS NULL`); n != 1 {
		t.Fatal("the request is answered, and no other agent would do it")
	}
	if err := r.run.Answer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if a, err := ledger.NewStore(r.pool).Answer(t.Context(), id); err != nil || a == nil || a.Code != job.ExitOK {
		t.Fatalf("%+v %v", a, err)
	}
	c := r.connect()
	if _, err := c.Exec(t.Context(), fmt.Sprintf(`SET kappactl.subject = '%s'`, "ann")); err != nil {
		t.Fatal(err)
	}
	if got := r.reads(c, "public.orders"); got != "2" || r.count(`SELECT count(*) FROM kappactl.route`) != 1 {
		t.Errorf("a subject reads version %s", got)
	}
}
