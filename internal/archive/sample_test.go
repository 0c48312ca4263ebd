package archive_test

import (
	"context"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// Agents renew the leases of several partitions in one statement, in any order. A sample that waited for one of these rows while it
// has locked another would deadlock with them.
func TestASampleWaitsForNoLockedPartition(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	var s archive.Store
	wanted(t, pool, "file://"+t.TempDir(), 10)
	other := orders
	other.ID++
	facts := []job.PartitionFacts{{Partition: orders, Start: 10, LastStable: 20}, {Partition: other, Start: 10, LastStable: 20}}
	if err := s.AddPartitions(t.Context(), pool, facts); err != nil {
		t.Fatal(err)
	}
	note := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.NoteSamples(ctx, pool, orders.TopicID, []archive.Sample{{PartitionFacts: facts[0]}, {PartitionFacts: facts[1]}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.LoseDeletes(ctx, pool); err != nil {
			t.Fatal(err)
		}
	}
	err := pool.ReadCommitted(t.Context(), func(renewing *pg.Tx) error {
		_, err := renewing.Exec(t.Context(), `UPDATE kappactl.archive_position SET lease = clock_timestamp() WHERE partition = $1`, other.ID)
		note()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left, err := s.Unsampled(t.Context(), pool, orders.TopicID, time.Hour)
	if _, waits := left[other.ID]; err != nil || len(left) != 1 || !waits {
		t.Fatalf("not sampled: %v, %v; want partition %d", left, err, other.ID)
	}
	note()
	if left, err = s.Unsampled(t.Context(), pool, orders.TopicID, time.Hour); err != nil || len(left) != 0 {
		t.Fatalf("not sampled: %v, %v", left, err)
	}
}
