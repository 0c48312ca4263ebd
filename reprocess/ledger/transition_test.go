package ledger_test

import (
	"errors"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestOnlyARollbackFollowsAnEndedDeployment(t *testing.T) {
	for _, s := range job.DeploymentStates() {
		for _, on := range ledger.DeploymentEvents() {
			to, ok := ledger.NextState(s, on)
			if ok && s.Ended() && (s != job.Settled || on != ledger.WentBack) {
				t.Errorf("%s on %q goes to %s", s, on, to)
			}
		}
	}
}

func TestEveryDeploymentEventAndStateIsInTheTable(t *testing.T) {
	reached := map[job.DeploymentState]bool{job.RollingOut: true}
	for _, on := range ledger.DeploymentEvents() {
		used := false
		for _, s := range job.DeploymentStates() {
			if to, ok := ledger.NextState(s, on); ok {
				used, reached[to] = true, true
			}
		}
		if !used {
			t.Errorf("%q has a meaning in no state", on)
		}
	}
	for _, s := range job.DeploymentStates() {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
	}
}

func TestADeploymentMovesOnlyAsTheTableAllows(t *testing.T) {
	pool := control(t)
	for _, from := range job.DeploymentStates() {
		for _, on := range ledger.DeploymentEvents() {
			st := deployed(t, pool, from)
			want, allowed := ledger.NextState(from, on)
			if !allowed {
				want = from
			}
			err := ledger.MoveDeployment(t.Context(), pool, st, on, ledger.Answer{})
			if allowed != (err == nil) || err != nil && !errors.Is(err, ledger.ErrLost) {
				t.Errorf("%s on %q: %v", from, on, err)
			}
			var got job.DeploymentState
			var ended bool
			err = pool.QueryRow(t.Context(), `SELECT state, ended_at IS NOT NULL FROM kappactl.deployment`).Scan(&got, &ended)
			if err != nil {
				t.Fatal(err)
			}
			if got != want || ended != want.Ended() {
				t.Errorf("%s on %q: the row is %s, ended %v", from, on, got, ended)
			}
		}
	}
}
