package ledger_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }

// control is a database with the control schema.
func control(t *testing.T) *pg.Pool {
	t.Helper()
	pool, _ := pgtest.New(t)
	return pool
}

// deployed writes v1 of job orders with one deployment in a state, in place of what was there.
func deployed(t *testing.T, pool *pg.Pool, state job.DeploymentState) *ledger.State {
	t.Helper()
	ctx := t.Context()
	spec := &job.Spec{Job: "orders", Serve: job.Serve{View: job.ViewName{Schema: "public", Name: "orders"}}}
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM kappactl.job`); err != nil {
			return err
		}
		if err := ledger.InsertJob(ctx, tx, spec, ""); err != nil {
			return err
		}
		if err := ledger.InsertVersion(ctx, tx, ledger.NewVersion{Number: 1, Hash: "hash", Spec: spec}); err != nil {
			return err
		}
		if _, err := ledger.InsertDeployment(ctx, tx, ledger.NewDeployment{Job: "orders", Number: 1}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET state = @state,
			ended_at = CASE WHEN @ended::boolean THEN clock_timestamp() END`,
			pgx.NamedArgs{"state": string(state), "ended": state.Ended()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	st, err := ledger.ReadState(ctx, pool, job.Ref{Job: "orders", Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	return st
}
