package speedlayer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// owned is one partition that this run holds. Its owner is the live loop.
type owned struct {
	partition job.Partition
	claim     int64
	next      int64  // as committed
	read      int64  // records holds what lies in [next, read)
	epoch     int32  // of the newest fetch
	hold      *int64 // the last hold that was seen; nil: none that counts
	records   []*kgo.Record
	bytes     int
	fault     job.Fault // met at read; written once everything below is committed
	halted    bool      // the row has a fault: nothing is read until it is cleared there
	haltedAt  int       // the renewal that was running then
	answers   bool      // while halted: the brokers answer for the partition again
	behind    int64     // offsets between read and the last stable one, as of the newest fetch
	failing   time.Time // since when fetches only failed; zero: the last one was answered
	narrowed
}

// recordBytes is about what a record holds in memory, with what the client keeps beside its bytes.
func recordBytes(rec *kgo.Record) int {
	n := len(rec.Key) + len(rec.Value) + 200
	for _, h := range rec.Headers {
		n += len(h.Key) + len(h.Value) + 40
	}
	return n
}

// absorb takes a fetch that continues at read.
func (o *owned) absorb(f kafka.Fetched) {
	for _, rec := range f.Records {
		o.records = append(o.records, rec)
		o.bytes += recordBytes(rec)
	}
	o.read, o.epoch = max(o.read, f.Next), f.LeaderEpoch
	o.stopAt(o.hold)
	o.behind = f.LastStable - o.read
}

// stopAt makes hold the one that counts; nil: none does. What was read beyond it is let go, and read again when the
// hold is over: it could fill the memory that other partitions need to come to theirs, and the barrier waits for them
// all.
func (o *owned) stopAt(hold *int64) {
	o.hold = hold
	if hold != nil {
		o.cutAt(max(*hold, o.next), job.Fault{})
	}
}

// rewind makes next the committed position: what lies below is dropped; when the records in hand do not reach up to it,
// or begin above it, reading restarts there.
func (o *owned) rewind(next int64) {
	if next < o.next || next > o.read {
		o.records, o.bytes, o.read, o.fault = nil, 0, next, job.Fault{}
	}
	o.next = next
	keep := 0
	for keep < len(o.records) && o.records[keep].Offset < next {
		o.bytes -= recordBytes(o.records[keep])
		keep++
	}
	o.records = append([]*kgo.Record(nil), o.records[keep:]...) // lets the old ones go
}

// goOn ends a halt: reading begins again at the committed position.
func (o *owned) goOn(next int64, epoch int32) {
	o.halted, o.answers, o.fault = false, false, job.Fault{}
	o.rewind(next)
	o.read, o.epoch = o.next, epoch
}

// cutAt drops the record at offset and everything after it: the partition ends there with a fault. It reports false
// when it already ends before.
func (o *owned) cutAt(offset int64, f job.Fault) bool {
	if offset >= o.read {
		return false
	}
	o.records = below(o.records, offset)
	o.bytes = 0
	for _, rec := range o.records {
		o.bytes += recordBytes(rec)
	}
	o.read, o.fault = offset, f
	return true
}

// end is how far a commit may go now.
func (o *owned) end() int64 {
	if o.hold != nil {
		return max(o.next, min(o.read, *o.hold))
	}
	return o.read
}

// pending reports whether there is something to commit.
func (o *owned) pending() bool { return !o.halted && o.end() > o.next }

// faulty reports whether a fault waits to be written and no uncommitted record precedes it.
func (o *owned) faulty() bool {
	return !o.halted && o.fault.Kind != job.FaultNone && o.next == o.read
}

// fetchable reports whether more may be asked for: nothing is wrong, there is no hold at that offset and not more than
// bound is in hand. A partition whose fault may end by itself is asked for as well: a gap does when the archive, where
// it is read, has the offsets by then.
func (o *owned) fetchable(bound int, archived bool) bool {
	if o.halted {
		return passing(o.fault.Kind) || archived && o.fault.Kind == job.FaultGap
	}
	return o.fault.Kind == job.FaultNone && o.bytes < bound && (o.hold == nil || o.read < *o.hold)
}

// part is one partition's contribution to a batch: the records of [from, to).
type part struct {
	*owned
	from, to int64
	records  []*kgo.Record
	letters  int
}

// cutBatch takes from every partition a first stretch of what is pending, at most limit records over all; the limit is
// shared evenly as far as possible. A stretch that ends before the end of what is pending ends at the next record's
// offset.
func cutBatch(all []*owned, limit int) []part {
	var parts []part
	left := 0
	for _, o := range all {
		if o.pending() {
			parts = append(parts, part{owned: o, from: o.next, to: o.end(), records: below(o.records, o.end())})
			left++
		}
	}
	out := parts[:0]
	for _, p := range parts {
		share := (limit + left - 1) / left
		left--
		if len(p.records) > share {
			p.to = p.records[share].Offset
			p.records = p.records[:share]
		}
		limit -= len(p.records)
		if p.to > p.from {
			out = append(out, p)
		}
	}
	return out
}

// below are the records with an offset below end.
func below(records []*kgo.Record, end int64) []*kgo.Record {
	n := len(records)
	for n > 0 && records[n-1].Offset >= end {
		n--
	}
	return records[:n]
}

func countRecords(parts []part) int {
	n := 0
	for _, p := range parts {
		n += len(p.records)
	}
	return n
}

// newestTime is the latest timestamp of the part's records.
func (p part) newestTime() *time.Time {
	var n newest
	for _, rec := range p.records {
		n.see(rec)
	}
	return n.time()
}

// lockedRow is a position row as the commit found it under its lock.
type lockedRow struct {
	Claim int64
	Next  int64
	Hold  *int64 // nil when there is none or it has expired
	Fault string
	Epoch int // mode lambda: the epoch of the rows that a commit writes
}

// outcome is the state of a locked position row, for a part that is to be committed.
type outcome int

const (
	fits    outcome = iota
	lost            // another worker has the partition
	moved           // the position is not where the part begins
	tooFar          // a hold is below the part's end
	faulted         // a fault was written beside it
)

// judge compares a part with its row; row is nil when there is none.
func judge(p part, row *lockedRow) outcome {
	switch {
	case row == nil || row.Claim != p.claim:
		return lost
	case row.Next != p.from:
		return moved
	case row.Fault != "":
		return faulted
	case row.Hold != nil && p.to > *row.Hold:
		return tooFar
	}
	return fits
}
