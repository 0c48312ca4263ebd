// Package archivetest archives what a topic holds, in one call, for tests of what reads the archive.
package archivetest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// Want makes the archive of a topic at a location, with its marker. Its partitions begin where the log does.
func Want(t testing.TB, pool *pg.Pool, brokers []string, topic, location string) []job.Partition {
	t.Helper()
	facts := offsets(t, brokers, topic)
	var s archive.Store
	err := s.Want(t.Context(), pool, archive.Wanted{
		Topic: topic, TopicID: facts[0].TopicID, Cluster: "test", Location: location, RollEvery: time.Hour,
		RollSize: 64 << 20, Jobs: []string{"test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddPartitions(t.Context(), pool, facts); err != nil {
		t.Fatal(err)
	}
	out := make([]job.Partition, len(facts))
	for i, f := range facts {
		out[i] = f.Partition
	}
	l, err := new(archive.Locations).Open(location)
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Mark(t.Context(), l, t.TempDir(), position(t, pool, out[0]).Archive); err != nil {
		t.Fatal(err)
	}
	return out
}

// Fill publishes a file of a partition for each of the offsets at which one ends, from where the archive ends on, and
// returns their names.
func Fill(t testing.TB, pool *pg.Pool, brokers []string, p job.Partition, ends ...int64) []string {
	t.Helper()
	var names []string
	for _, end := range ends {
		at := position(t, pool, p)
		records, epoch := read(t, brokers, p, at.Next, end)
		w, err := archive.NewWriter(t.TempDir(), p, at.Next)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if err := w.Add(r); err != nil {
				t.Fatal(err)
			}
			if i%1000 == 999 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		f, err := w.Finish(archive.Footer{
			Cluster: "test", Partition: p, Range: job.Range{From: at.Next, To: end},
			LeaderEpoch: epoch,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := new(archive.Locations).Open(at.Location)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Put(t.Context(), f.Name(), f.Path); err != nil {
			t.Fatal(err)
		}
		if err := (archive.Store{}).Publish(t.Context(), pool, at, f); err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name())
	}
	return names
}

// position claims the position of a partition and returns it.
func position(t testing.TB, pool *pg.Pool, p job.Partition) archive.Position {
	t.Helper()
	var item, claim int64
	err := pool.QueryRow(t.Context(), `UPDATE kappactl.archive_position SET claim = claim + 1
		WHERE topic_id = $1::uuid AND partition = $2 RETURNING id, claim`, p.TopicID.String(), p.ID).Scan(&item, &claim)
	if err != nil {
		t.Fatal(err)
	}
	at, err := archive.Store{}.Held(t.Context(), pool, item, claim)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func offsets(t testing.TB, brokers []string, topic string) []job.PartitionFacts {
	t.Helper()
	a, err := kafka.NewAdmin(kafka.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	facts, err := a.Offsets(t.Context(), []string{topic})
	if err != nil || len(facts) == 0 {
		t.Fatalf("offsets of %s: %d partitions, %v", topic, len(facts), err)
	}
	return facts
}

// read returns the records of a range of the log and the leader's epoch.
func read(t testing.TB, brokers []string, p job.Partition, from, to int64) (records []*kgo.Record, epoch int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := kafka.NewFetcher(kafkatest.Client(t, brokers), kafka.FetchConfig{})
	defer f.Close()
	for at := (kafka.Cursor{Partition: p, Next: from, LeaderEpoch: -1}); at.Next < to; {
		fetched, err := f.Fetch(ctx, []kafka.Cursor{at})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range fetched {
			if g.Err != nil {
				t.Logf("read %s: %v", p, g.Err)
				continue
			}
			for _, r := range g.Records {
				if r.Offset < to {
					records = append(records, r)
				}
			}
			at.Next, at.LeaderEpoch, epoch = g.Next, g.LeaderEpoch, g.LeaderEpoch
		}
	}
	return records, epoch
}
