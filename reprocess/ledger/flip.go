package ledger

import (
	"context"

	"github.com/kappactl/kappactl/internal/pg"
)

// FlipDetail is the detail of the event of a flip.
type FlipDetail struct {
	Seconds float64 `json:"seconds"` // of the try that succeeded
	From    *int    `json:"from"`    // the version that readers left
	// XID is the flip's transaction: who holds a snapshot with a later xmin has seen it.
	XID     string    `json:"xid"`
	Ignored []Blocker `json:"ignored_readers,omitempty"`
}

// AddFlip appends the event of a flip to the history, with the id of its transaction.
func AddFlip(ctx context.Context, tx *pg.Tx, e Entry, d FlipDetail) error {
	if err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&d.XID); err != nil {
		return Wrap(err, "read the transaction's id")
	}
	e.Detail = d
	return AddEvent(ctx, tx, e)
}
