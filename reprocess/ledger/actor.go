package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// SlowLock bounds the waits for rows of the control tables.
const SlowLock = 2 * time.Second

// Actor is on whose behalf an act is done: a request or a deployment, under its claim.
type Actor struct {
	Request    int64
	Deployment int64
	Claim      int64
	By         string
	Role       string              // the database role of who asked; empty: of this session
	Cause      reason.Reason       // of an act that no person asked for
	While      job.DeploymentState // the deployment must be in it still, and the newest of its version; empty: whatever
}

// Fence locks the actor's row, so that an act is done once: ErrLost when it is answered, somebody else holds it, or the
// deployment no longer governs its version in the state in which it decided to act.
func (a Actor) Fence(ctx context.Context, tx *pg.Tx) error {
	var held bool
	var err error
	if a.Request != 0 {
		held, err = lockRequest(ctx, tx, a.Request, a.Claim)
	} else {
		held, err = LockDeployment(ctx, tx, a.Deployment, a.Claim, a.While)
	}
	if err == nil && !held {
		return ErrLost
	}
	return err
}

// Begin is how every act on a job begins: the job's row is locked, then the actor's.
func (a Actor) Begin(ctx context.Context, tx *pg.Tx, name job.Name) (JobRow, error) {
	if err := LockTimeout(ctx, tx, SlowLock); err != nil {
		return JobRow{}, err
	}
	j, err := LockJob(ctx, tx, name)
	if err != nil {
		return JobRow{}, err
	}
	return j, a.Fence(ctx, tx)
}

// Answer writes the answer in the act's own transaction; an act of a deployment has none.
func (a Actor) Answer(ctx context.Context, db pg.DB, answer reason.Reason, next string) error {
	if a.Request == 0 {
		return nil
	}
	return WriteAnswer(ctx, db, a.Request, a.Claim, Answer{Code: job.ExitOK, Reason: answer, Next: next})
}

func lockRequest(ctx context.Context, tx *pg.Tx, id, claim int64) (bool, error) {
	tag, err := tx.Exec(ctx,
		`SELECT 1 FROM kappactl.request WHERE id = @id AND claim = @claim AND answered_at IS NULL FOR UPDATE`,
		pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return false, fmt.Errorf("lock request %d: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

// LockDeployment locks a deployment's row and reports whether it is under the claim and, unless while is empty, still
// in that state and the newest of its version.
func LockDeployment(ctx context.Context, tx *pg.Tx, id, claim int64, while job.DeploymentState) (bool, error) {
	tag, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.deployment d WHERE id = @id AND claim = @claim AND (@while::text = ''
			OR state = @while AND NOT EXISTS (SELECT FROM kappactl.deployment n WHERE n.job = d.job AND n.number = d.number AND n.id > d.id))
		FOR UPDATE OF d`,
		pgx.NamedArgs{"id": id, "claim": claim, "while": string(while)})
	if err != nil {
		return false, fmt.Errorf("lock deployment %d: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}
