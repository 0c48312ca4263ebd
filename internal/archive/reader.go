package archive

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// Policy is where a Reader reads offsets that the brokers, the archive or both hold.
type Policy int32

// The policies.
const (
	LogOnly      Policy = iota // the archive is never read
	ArchiveFirst               // what the archive holds is read there, all else from the brokers
	LogFirst                   // only what retention took from the log is read from the archive
	ArchiveOnly                // the brokers are never asked
)

// ReplayPolicy is where a replay reads, of a job that keeps an archive or does not.
func ReplayPolicy(s job.ReplaySource, kept bool) Policy {
	switch {
	case s == job.SourceArchive:
		return ArchiveOnly
	case s.ReadsArchive(kept):
		return ArchiveFirst
	}
	return LogOnly
}

// Brokers answers cursors from the log; implemented by *kafka.Fetcher.
type Brokers interface {
	Fetch(ctx context.Context, cursors []kafka.Cursor) ([]kafka.Fetched, error)
	Poll(ctx context.Context, cursors []kafka.Cursor) ([]kafka.Fetched, error)
	Bound(c kafka.FetchConfig)
	Close()
}

// Reader answers cursors as the log's fetcher does: from files of the archive or from the brokers, decided offset by
// offset. A reader that comes to the end of the archive goes on in the log. One goroutine owns it; it holds at most one
// file at a time.
//
// Answers from the archive have the cursor's own leader epoch, or the file's when that is newer: under an older one the
// log might not have reached the offset, and would be taken for one that was cut off.
type Reader struct {
	brokers Brokers
	shelf   *Shelf
	policy  Policy
	now     func() time.Time
	wait    time.Duration // for a file that fails, in one call

	places map[job.Partition]*place
	open   *opened // the file in hand; nil: none
}

// place is what a reader knows of one partition.
type place struct {
	next     int64
	source   source
	row      FileRow   // with fromFile
	due      time.Time // not tried before
	listed   bool      // in this call
	archived job.Range // with fromNothing: what the archive holds
}

type source int

const (
	unknown     source = iota
	fromLog            // until the log lacks an offset
	fromFile           // row holds next
	fromNothing        // ArchiveOnly, and no file holds next
)

const (
	chunkBytes = 1 << 20 // about what one answer holds of a file
	retryAfter = time.Second
)

// NewReader makes a reader over brokers and the archive that the shelf copies from. Close ends both it and brokers.
func NewReader(brokers Brokers, shelf *Shelf, p Policy, now func() time.Time) *Reader {
	return &Reader{
		brokers: brokers, shelf: shelf, policy: p, now: now, wait: 250 * time.Millisecond,
		places: map[job.Partition]*place{},
	}
}

// Prefer sets the policy from the next call on.
func (r *Reader) Prefer(p Policy) {
	if p != r.policy {
		r.policy = p
		clear(r.places)
	}
}

// Bound is that of the brokers' fetcher.
func (r *Reader) Bound(c kafka.FetchConfig) { r.brokers.Bound(c) }

// Rest lets go of the file in hand. Reading may go on.
func (r *Reader) Rest() {
	if r.open != nil {
		r.open.close(r.shelf)
		r.open = nil
	}
}

// Close ends the reader and the fetcher of the brokers.
func (r *Reader) Close() {
	r.Rest()
	r.brokers.Close()
}

// Fetch answers as kafka.Fetcher.Fetch does. Errors of files and of the manifest are in Err of the answers: a
// *DamagedError is final, others pass.
func (r *Reader) Fetch(ctx context.Context, cursors []kafka.Cursor) ([]kafka.Fetched, error) {
	if r.policy == LogOnly {
		r.Rest()
		return r.brokers.Fetch(ctx, cursors)
	}
	r.follow(cursors)
	out := r.locate(ctx, cursors)
	var log, archived []kafka.Cursor
	for _, c := range cursors {
		switch p := r.places[c.Partition]; p.source {
		case fromLog:
			log = append(log, c)
		case fromFile:
			archived = append(archived, c)
		case fromNothing:
			out = append(out, nothing(c, p.archived)...)
			p.source = unknown // the archive grows
		case unknown: // its error is in out
		}
	}
	var err error
	if len(archived) > 0 {
		out, err = r.fromFiles(ctx, archived, out)
	} else {
		r.Rest()
	}
	if err == nil && len(log) > 0 {
		out, err = r.fromBrokers(ctx, log, out, len(archived) > 0)
	}
	if err == nil && len(out) == 0 && len(log) == 0 && len(cursors) > 0 {
		err = r.pause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// follow takes over the caller's cursors.
func (r *Reader) follow(cursors []kafka.Cursor) {
	for _, p := range r.places {
		p.listed = false
	}
	for _, c := range cursors {
		p := r.places[c.Partition]
		if p == nil || p.next != c.Next {
			p = &place{next: c.Next}
			r.places[c.Partition] = p
		}
		p.listed = true
	}
	for id, p := range r.places {
		if !p.listed {
			delete(r.places, id)
		}
	}
}

// locate decides where the cursors are answered from that came anew.
func (r *Reader) locate(ctx context.Context, cursors []kafka.Cursor) (out []kafka.Fetched) {
	for _, c := range cursors {
		p := r.places[c.Partition]
		if p.source != unknown {
			continue
		}
		if r.policy == LogFirst {
			p.source = fromLog
			continue
		}
		if err := r.find(ctx, c.Partition, p); err != nil {
			out = append(out, failed(c, err))
		}
	}
	return out
}

// find asks the manifest for the offset that comes next.
func (r *Reader) find(ctx context.Context, of job.Partition, p *place) error {
	row, ok, err := Store{}.Locate(ctx, r.shelf.db, of.TopicID, of.ID, p.next)
	switch {
	case err != nil:
		return err
	case ok && !row.Gap():
		p.source, p.row = fromFile, row
	case r.policy == ArchiveOnly:
		p.source = fromNothing
		p.archived, err = Store{}.Bounds(ctx, r.shelf.db, of, p.next)
	default:
		p.source = fromLog
	}
	return err
}

// nothing answers a cursor of which the archive holds nothing: a gap below what it holds, silence at its end.
func nothing(c kafka.Cursor, archived job.Range) []kafka.Fetched {
	if c.Next >= archived.To {
		return nil
	}
	return []kafka.Fetched{failed(c, &kafka.GapError{
		Partition: c.Partition, Wanted: c.Next, Start: archived.From,
		End: archived.To,
	})}
}

func failed(c kafka.Cursor, err error) kafka.Fetched {
	return kafka.Fetched{
		Partition: c.Partition, Next: c.Next, LeaderEpoch: -1, LogStart: -1, LastStable: -1, End: -1,
		Err: err,
	}
}

// fromBrokers asks the brokers. An answer that retention took the offset is withheld when the archive holds it.
func (r *Reader) fromBrokers(ctx context.Context, log []kafka.Cursor, out []kafka.Fetched, poll bool) ([]kafka.Fetched,
	error,
) {
	ask := r.brokers.Fetch
	if poll {
		ask = r.brokers.Poll
	}
	fetched, err := ask(ctx, log)
	if err != nil {
		return nil, err
	}
	for _, f := range fetched {
		p := r.places[f.Partition]
		var gap *kafka.GapError
		switch {
		case f.Err == nil:
			p.next = f.Next
		case errors.As(f.Err, &gap) && !gap.Cut && gap.Wanted < gap.Start:
			if err := r.find(ctx, f.Partition, p); err != nil {
				f = failed(kafka.Cursor{Partition: f.Partition, Next: p.next}, err)
			}
			if p.source == fromFile {
				continue
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// fromFiles answers one of the cursors, that of the file in hand first, so that a file is read to its end before the
// next one.
func (r *Reader) fromFiles(ctx context.Context, archived []kafka.Cursor, out []kafka.Fetched) ([]kafka.Fetched, error) {
	if i := slices.IndexFunc(archived, r.inHand); i > 0 {
		archived[0], archived[i] = archived[i], archived[0]
	}
	now := r.now()
	for _, c := range archived {
		p := r.places[c.Partition]
		if p.due.After(now) {
			continue
		}
		f := r.read(ctx, c, p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return append(out, f), nil
	}
	return out, nil
}

func (r *Reader) inHand(c kafka.Cursor) bool {
	return r.open != nil && r.open.row.Partition == c.Partition && r.open.row.Name == r.places[c.Partition].row.Name
}

// pause waits where there is nothing to do, as the brokers' fetcher waits for records.
func (r *Reader) pause(ctx context.Context) error {
	t := time.NewTimer(r.wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
