package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// RollbackFailure is the detail of EventNotRolledBack: an automatic rollback that a check asked for and that failed.
type RollbackFailure struct {
	Check string        `json:"check"`
	To    string        `json:"to"`
	Cause reason.Reason `json:"cause"`
}

// ReadRollbackFailure reads the failed automatic rollback of a deployment; nil when there was none, or when none is
// needed since.
func ReadRollbackFailure(ctx context.Context, db pg.DB, deployment int64) (*RollbackFailure, error) {
	found, err := pg.Structs[struct {
		Kind   EventKind
		Detail RollbackFailure
	}](ctx, db, `SELECT kind, detail FROM kappactl.event WHERE deployment = @id AND kind IN (@failed, @over)
		ORDER BY id DESC LIMIT 1`,
		pgx.NamedArgs{"id": deployment, "failed": string(EventNotRolledBack), "over": string(EventNoRollbackNeeded)})
	if err != nil || len(found) == 0 || found[0].Kind != EventNotRolledBack {
		return nil, Wrap(err, "read the rollbacks of deployment %d", deployment)
	}
	return &found[0].Detail, nil
}
