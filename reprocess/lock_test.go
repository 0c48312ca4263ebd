package reprocess_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess"
)

// TestACommitThatWritesADeadLetterDoesNotWaitForAFlip: its foreign key locks the version's row after the commit has locked the
// positions, which the flip waits for. The two deadlocked.
func TestACommitThatWritesADeadLetterDoesNotWaitForAFlip(t *testing.T) {
	w := firstLive(t, 10)
	ref := job.Ref{Job: "counts", Number: 1}
	err := w.pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if err := reprocess.LockVersions(t.Context(), tx, ref, job.Ref{Job: "counts", Number: 2}); err != nil {
			return err
		}
		return w.pool.ReadCommitted(t.Context(), func(commit *pg.Tx) error {
			if _, err := commit.Exec(t.Context(), `SET LOCAL lock_timeout = '10s'`); err != nil {
				return err
			}
			began := time.Now()
			_, err := commit.Exec(t.Context(), `INSERT INTO kappactl.dead_letter (job, number, topic_id, topic, partition, "offset", reason)
				VALUES ('counts', 1, gen_random_uuid(), 'events', 0, 3, 'not_json')`)
			t.Logf("written after %s", time.Since(began))
			return err
		})
	})
	if err != nil {
		t.Errorf("a dead letter beside a flip: %v", err)
	}
}
