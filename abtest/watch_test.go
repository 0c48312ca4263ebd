package abtest

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// watched looks after the open experiment until it is paused.
func (r *rig) watched() Status {
	r.t.Helper()
	var id int64
	if err := r.pool.QueryRow(r.t.Context(), `SELECT id FROM kappactl.experiment WHERE ended_at IS NULL`).Scan(&id); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.run.Watch(r.t.Context(), id, 0) }()
	for r.status().State == Running {
		if retry.Sleep(r.t.Context(), time.Millisecond) != nil {
			r.t.Fatal("it is not paused")
		}
	}
	s := r.status()
	r.ok(ledger.ABStop, ledger.Args{})
	if err := <-ended; err != nil {
		r.t.Error(err)
	}
	return s
}

// Readers leave an arm that is in trouble: at once when it cannot be read, after a while when it is behind.
func TestReadersLeaveAnArmInTrouble(t *testing.T) {
	t.Parallel()
	for set, patience := range map[string]time.Duration{
		"verdict = 'unhealthy'": time.Hour, "phase = 'failed'": time.Hour, "verdict = 'stalled'": 20 * time.Millisecond,
	} {
		r := newRig(t)
		r.run.config.Tick, r.run.config.Patience = time.Millisecond, patience
		r.ok(ledger.ABStart, arms(0, 1))
		r.exec(`UPDATE kappactl.version SET ` + set + ` WHERE number = 2`)
		if s := r.watched(); s.State != Paused || s.ReasonCode != reason.CodeABTrouble {
			t.Errorf("%s: %+v", set, s)
		}
	}
}

func TestAnExperimentIsNotPausedForWhatIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	r.run.Now = func() time.Time { return now }
	r.run.config.Patience = time.Minute
	r.ok(ledger.ABStart, arms(0, 1))
	var id int64
	if err := r.pool.QueryRow(t.Context(), `SELECT id FROM kappactl.experiment`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	w := &watch{r: r.run, id: id, since: map[string]time.Time{}}
	for _, step := range []struct {
		verdict job.Verdict
		after   time.Duration
		want    State
	}{
		{job.Lagging, 0, Running},
		{job.Lagging, 50 * time.Second, Running},
		{job.Ready, 5 * time.Second, Running},
		{job.Lagging, 10 * time.Second, Running},
		{job.Holding, 50 * time.Second, Running},
		{job.Stalled, 10 * time.Second, Running},
		{job.Lagging, 61 * time.Second, Paused},
	} {
		now = now.Add(step.after)
		r.exec(`UPDATE kappactl.version SET verdict = $1 WHERE number = 2`, string(step.verdict))
		if over, err := w.look(t.Context()); over || err != nil {
			t.Fatalf("over: %t, %v", over, err)
		}
		if s := r.status(); s.State != step.want {
			t.Errorf("%s after %s: %s", step.verdict, step.after, s.State)
		}
	}
	w.claim++ // another agent
	if over, err := w.look(t.Context()); !over || err != nil {
		t.Errorf("without the claim it goes on: %v", err)
	}
}
