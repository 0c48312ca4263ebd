package kafka

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// timesTimeout bounds a call of Times. Partitions not answered by then are left out.
const timesTimeout = 3 * time.Second

// Times returns the timestamps of the first record at or after each offset. It leaves out partitions whose log no
// longer holds the offset, has no record from there on, does not timestamp records, or does not answer in time.
func (a *Admin) Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error) {
	limited, cancel := context.WithTimeout(ctx, timesTimeout)
	defer cancel()
	f := NewFetcher(a.cl, FetchConfig{MaxPartitionBytes: 64 << 10, MaxBytes: 4 << 20})
	defer f.Close()
	out := make(map[job.Partition]time.Time, len(at))
	open := make(map[job.Partition]int64, len(at))
	for p, offset := range at {
		open[p] = offset
	}
	for len(open) > 0 {
		cursors := make([]Cursor, 0, len(open))
		for p, offset := range open {
			cursors = append(cursors, Cursor{Partition: p, Next: offset, LeaderEpoch: -1})
		}
		fetched, err := f.Fetch(limited, cursors)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return out, nil
		case err != nil:
			return nil, err
		}
		for _, got := range fetched {
			switch {
			case got.Err != nil && !Final(got.Err): // retried
			case got.Err != nil:
				delete(open, got.Partition)
			case len(got.Records) > 0:
				delete(open, got.Partition)
				if r := got.Records[0]; r.Timestamp.UnixMilli() >= 0 {
					out[got.Partition] = r.Timestamp
				}
			case got.Next >= got.LastStable:
				delete(open, got.Partition)
			default:
				open[got.Partition] = got.Next
			}
		}
	}
	return out, nil
}
