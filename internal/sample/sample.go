package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// Patience is how long a sample waits for brokers that return nothing before it ends with what it has.
const Patience = 5 * time.Second

// Piece is the sample of one partition: an offset range and its committed records.
type Piece struct {
	job.Partition
	job.Range
	Records []*kgo.Record
	Bytes   int64 // of keys and values
}

// Reader reads samples. One goroutine owns it.
type Reader struct {
	client  *kgo.Client
	fetcher Fetcher
	now     func() time.Time
}

// Fetcher fetches records for cursors: from the log, or from the log and the archive.
type Fetcher interface {
	Fetch(ctx context.Context, cursors []kafka.Cursor) ([]kafka.Fetched, error)
	Close()
}

// Through replaces the reader's fetcher with the one that wrap returns for it.
func (r *Reader) Through(wrap func(*kafka.Fetcher) Fetcher) {
	if f, ok := r.fetcher.(*kafka.Fetcher); ok {
		r.fetcher = wrap(f)
	}
}

// NewReader creates a reader. It opens no connection until the first read. Close closes its connections.
func NewReader(c kafka.Config, now func() time.Time) (*Reader, error) {
	client, err := kafka.NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Reader{client: client, fetcher: kafka.NewFetcher(client,
		kafka.FetchConfig{MaxPartitionBytes: 256 << 10, MaxBytes: 4 << 20}), now: now}, nil
}

// Close closes the connections.
func (r *Reader) Close() {
	r.fetcher.Close()
	r.client.Close()
}

// Oldest reads up to n records from the start of the ranges, an equal share from each.
func (r *Reader) Oldest(ctx context.Context, ranges []job.Frozen, n int) ([]Piece, error) {
	return r.read(ctx, ranges, n)
}

// Newest reads up to n records from the end of the ranges, an equal share from each.
func (r *Reader) Newest(ctx context.Context, ranges []job.Frozen, n int) ([]Piece, error) {
	share := int64(n / max(1, len(ranges)))
	tails := make([]job.Frozen, len(ranges))
	for i, f := range ranges {
		f.From = max(f.From, f.To-share)
		tails[i] = f
	}
	return r.read(ctx, tails, n)
}

// Spread reads up to n records at each of the given number of places in every range. The first place is the range's
// start.
func (r *Reader) Spread(ctx context.Context, ranges []job.Frozen, places, n int) ([]Piece, error) {
	var out []Piece
	for place := range places {
		at := make([]job.Frozen, 0, len(ranges))
		for _, f := range ranges {
			from, to := f.From+f.Len()*int64(place)/int64(places), f.From+f.Len()*int64(place+1)/int64(places)
			if from < to {
				f.Range = job.Range{From: from, To: to}
				at = append(at, f)
			}
		}
		pieces, err := r.read(ctx, at, n*len(at))
		if err != nil {
			return nil, err
		}
		out = append(out, pieces...)
	}
	return out, nil
}

// read reads from the start of every range until the range has its share of n records, ends or cannot be read.
func (r *Reader) read(ctx context.Context, ranges []job.Frozen, n int) ([]Piece, error) {
	pieces := make([]Piece, len(ranges))
	index := map[job.Partition]int{}
	open := map[int]bool{}
	for i, f := range ranges {
		pieces[i] = Piece{Partition: f.Partition, Range: job.Range{From: f.From, To: f.From}}
		index[f.Partition] = i
		open[i] = f.From < f.To
	}
	share, last := max(1, n/max(1, len(ranges))), errors.New("no answer")
	since := r.now()
	for {
		cursors := make([]kafka.Cursor, 0, len(open))
		for i := range ranges {
			if open[i] {
				cursors = append(cursors, kafka.Cursor{
					Partition: ranges[i].Partition, Next: pieces[i].To, LeaderEpoch: ranges[i].LeaderEpoch,
				})
			}
		}
		if len(cursors) == 0 {
			return pieces, nil
		}
		fetched, err := r.fetcher.Fetch(ctx, cursors)
		if err != nil {
			return nil, fmt.Errorf("sample the log: %w", err)
		}
		moved := false
		for _, f := range fetched {
			i, known := index[f.Partition]
			switch {
			case !known:
			case f.Err != nil && kafka.Final(f.Err):
				open[i], moved = false, true // truncated meanwhile: the other ranges can still be read
			case f.Err != nil:
				last = f.Err
			default:
				moved = pieces[i].take(f, ranges[i].To, share) || moved
				open[i] = pieces[i].To < ranges[i].To && len(pieces[i].Records) < share
			}
		}
		if moved {
			since = r.now()
		} else if r.now().Sub(since) > Patience {
			return pieces, fmt.Errorf("sample the log: no data for %s: %w", Patience, last)
		}
	}
}

// take adds fetched records below offset to, up to n records in all, and reports whether the piece advanced.
func (p *Piece) take(f kafka.Fetched, to int64, n int) bool {
	before, next := p.To, min(f.Next, to)
	for _, rec := range f.Records {
		if rec.Offset < before || rec.Offset >= to {
			continue
		}
		if len(p.Records) == n {
			next = rec.Offset
			break
		}
		p.Records = append(p.Records, rec)
		p.Bytes += int64(len(rec.Key) + len(rec.Value))
	}
	p.To = max(before, next)
	return p.To > before
}

// Records returns the records of all pieces without duplicates.
func Records(pieces ...[]Piece) []*kgo.Record {
	type place struct {
		topic     string
		partition int32
		offset    int64
	}
	seen := map[place]bool{}
	var out []*kgo.Record
	for _, list := range pieces {
		for _, p := range list {
			for _, rec := range p.Records {
				at := place{rec.Topic, rec.Partition, rec.Offset}
				if !seen[at] {
					seen[at] = true
					out = append(out, rec)
				}
			}
		}
	}
	return out
}
