package ledger_test

import (
	"errors"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

func TestManyStatesAreReadAgainOnlyWhereTheyChanged(t *testing.T) {
	pool := control(t)
	st := deployed(t, pool, job.Observing)
	known := ledger.Known{ID: st.ID, Claim: st.Held, Digest: st.Digest}
	load := func(k ledger.Known) ledger.Fresh {
		t.Helper()
		out, err := ledger.LoadStates(t.Context(), pool, []ledger.Known{{ID: 1 << 40, Claim: 1}, k})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(out[0].Err, ledger.ErrGone) {
			t.Errorf("of a deployment that is not there: %+v", out[0])
		}
		return out[1]
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	same := func(after string) {
		t.Helper()
		if f := load(known); f.State != nil || f.Err != nil || f.Now.IsZero() {
			t.Errorf("after %s: %+v, want only the clock", after, f)
		}
	}
	same("nothing")
	exec(`UPDATE kappactl.deployment SET lease = clock_timestamp()`)
	same("a renewal of the lease")
	for _, change := range []string{
		`UPDATE kappactl.deployment SET message = '{"code": "is_paused"}'`, `UPDATE kappactl.deployment SET observe_until = clock_timestamp()`,
		`UPDATE kappactl.version SET verdict = 'lagging'`, `UPDATE kappactl.version SET paused_at = clock_timestamp()`,
		`UPDATE kappactl.job SET live = 1`,
	} {
		exec(change)
		f := load(known)
		if f.Err != nil || f.State == nil {
			t.Fatalf("after %s: %+v, want the state", change, f)
		}
		direct, err := ledger.LoadState(t.Context(), pool, st.ID, st.Held)
		if err != nil || direct.Digest != f.State.Digest || !direct.Message.Equal(f.State.Message) || direct.Verdict != f.State.Verdict ||
			f.State.Claim != st.Held {
			t.Errorf("after %s: %+v, read by itself %+v, %v", change, f.State, direct, err)
		}
		known.Digest = f.State.Digest
		same("reading it")
	}
	exec(`UPDATE kappactl.deployment SET claim = claim + 1`)
	if f := load(known); !errors.Is(f.Err, ledger.ErrGone) {
		t.Errorf("of a deployment that somebody else claimed: %+v", f)
	}
	known.Claim++
	exec(`INSERT INTO kappactl.deployment (job, number, promote, state) VALUES ('orders', 1, 'manual', 'waiting')`)
	if f := load(known); !errors.Is(f.Err, ledger.ErrGone) {
		t.Errorf("of a deployment that a newer one follows: %+v", f)
	}
}

func TestSamplesAreWrittenAndKeptOnlyUnderTheClaim(t *testing.T) {
	pool := control(t)
	st := deployed(t, pool, job.Observing)
	st.Claim = st.Held
	old := *st
	old.Claim--
	row := func(position int64) []readiness.Observation {
		return []readiness.Observation{{TopicID: "00000000-0000-0000-0000-000000000001", Topic: "t", Position: position, Verdict: job.Ready}}
	}
	stored := func() (position int64, age float64) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `SELECT position, extract(epoch FROM clock_timestamp() - sampled_at)::float8 FROM kappactl.observation`).Scan(&position, &age)
		if err != nil {
			t.Fatal(err)
		}
		return position, age
	}
	if err := ledger.WriteObservations(t.Context(), pool, ledger.Samples{State: st, Rows: row(1)}, ledger.Samples{State: &old, Rows: row(2)}); err != nil {
		t.Fatal(err)
	}
	if position, _ := stored(); position != 1 {
		t.Errorf("position %d is stored, want that of the claim", position)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE kappactl.observation SET sampled_at = sampled_at - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	for _, by := range []*ledger.State{&old, st} {
		kept, err := ledger.KeepObservations(t.Context(), pool, []*ledger.State{by})
		if err != nil || (kept[0] == 1) != (by == st) {
			t.Fatalf("kept %v: %v", kept, err)
		}
		if _, age := stored(); (age > 1800) != (by == &old) {
			t.Errorf("kept under claim %d of %d: the sample is %.0fs old", by.Claim, st.Claim, age)
		}
	}
}
