package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// noteArchive writes what was done to an archive into the history of each job that wants it. An archive that has ended
// has no job, and leaves no event.
func (a *app) noteArchive(ctx context.Context, db pg.DB, jobs []string, kind ledger.EventKind, message reason.Reason,
	detail any,
) error {
	for _, name := range jobs {
		err := ledger.AddEvent(ctx, db, ledger.Entry{
			Job: name, Whole: true, Kind: kind, Message: message, Detail: detail,
			By: a.by(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
