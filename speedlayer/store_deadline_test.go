package speedlayer

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

func TestDeadlinesDoNotWaitForASegmentThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Replaying)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 10, 5))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func() {
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (Store{}).Deadlines(limited, pool, ref, func(job.Partition, int64) *time.Time { return &at }); err != nil {
			t.Error(err)
		}
	}
	inTx(t, pool, func(tx *pg.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT 1 FROM kappactl.segment WHERE from_offset = 0 FOR UPDATE`)
		write()
		return err
	})
	const dated = `SELECT from_offset, deadline IS NOT NULL FROM kappactl.segment ORDER BY id`
	if diff := cmp.Diff([]string{"(0,f)", "(5,t)"}, lines(t, pool, dated)); diff != "" {
		t.Error(diff)
	}
	write()
	if diff := cmp.Diff([]string{"(0,t)", "(5,t)"}, lines(t, pool, dated)); diff != "" {
		t.Error(diff)
	}
}
