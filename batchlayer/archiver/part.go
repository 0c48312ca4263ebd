package archiver

import (
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// rowGroup is how many bytes of records make a row group, unless memory is short before.
const rowGroup = 16 << 20

// order tells Run the next step for a partition.
type order struct {
	publish bool      // or else a row group
	fault   job.Fault // of some kind: the partition cannot go on
	err     error     // what the partition failed with; Run ends with it
}

// part is a partition that is held. The goroutine of Host owns it; while busy its Run does.
type part struct {
	job.Partition
	position archive.Position // as published
	location archive.Location
	orders   chan order // of capacity 1
	stop     func()     // ends its Run
	mergeDue time.Time  // no merging before; of Run
	typeDue  time.Time  // no typing before; of Run

	busy     bool
	buffered int             // bytes in memory, of the writer
	writer   *archive.Writer // nil: no record is waiting
	next     int64           // of the log
	epoch    int32
	mark     mark      // an end of the log that was seen
	caughtUp time.Time // all that the log held then was read; zero: unknown
	due      time.Time // when what is waiting is to be published
}

// mark is where the log ended at a time.
type mark struct {
	at     time.Time
	stable int64
}

// cursor is where to read on.
func (p *part) cursor() kafka.Cursor {
	return kafka.Cursor{Partition: p.Partition, Next: p.next, LeaderEpoch: p.epoch}
}

// waiting reports whether something was read that is not published.
func (p *part) waiting() bool { return p.next > p.position.Next }

// take adds an answer to the partition's file. Errors of the log are the caller's.
func (p *part) take(got kafka.Fetched, temp string, now time.Time) error {
	for _, r := range got.Records {
		if p.writer == nil {
			w, err := archive.NewWriter(temp, p.Partition, p.position.Next)
			if err != nil {
				return err
			}
			p.writer = w
		}
		if err := p.writer.Add(r); err != nil {
			return err
		}
	}
	p.next, p.epoch = got.Next, got.LeaderEpoch
	if p.mark.at.IsZero() {
		p.mark = mark{at: now, stable: got.LastStable}
	}
	if p.next >= p.mark.stable {
		p.caughtUp, p.mark = p.mark.at, mark{at: now, stable: got.LastStable}
	}
	if p.writer != nil {
		p.buffered = p.writer.Buffered()
	}
	if !p.waiting() { // at the end: the time of a file begins with its first record
		p.due = now.Add(p.position.RollEvery)
	}
	return nil
}

// ripe reports whether what is waiting is to be published.
func (p *part) ripe(now time.Time) bool {
	return p.waiting() && (!now.Before(p.due) || p.writer != nil && p.writer.Size() >= p.position.RollSize)
}

// give hands the partition to its Run.
func (p *part) give(o order) {
	p.busy = true
	p.orders <- o
}

// faultOf returns the fault that a permanent error causes; a fault without a kind for an error that a retry may cure.
func (p *part) faultOf(err error) job.Fault {
	var (
		gap       *kafka.GapError
		recreated *kafka.RecreatedError
		missing   *kafka.MissingTopicError
		large     *kafka.TooLargeError
	)
	f := job.Fault{Detail: err.Error(), From: p.next, To: p.next}
	switch {
	case errors.As(err, &gap) && gap.Wanted > gap.End && !gap.Cut && p.epoch < 0:
		return job.Fault{} // a cut that was accepted: the log has to come to the position again
	case errors.As(err, &gap) && (gap.Cut || gap.Wanted > gap.Start):
		f.Kind, f.From, f.To = job.FaultGap, gap.End, gap.Wanted
	case errors.As(err, &gap):
		f.Kind, f.From, f.To = job.FaultGap, gap.Wanted, gap.Start
	case errors.As(err, &recreated):
		f.Kind = job.FaultRecreated
	case errors.As(err, &missing):
		f.Kind = job.FaultMissing
	case errors.As(err, &large):
		f.Kind, f.From, f.To = job.FaultTooLarge, large.Offset, max(large.End, large.Offset+1)
	default:
		return job.Fault{}
	}
	return f
}
