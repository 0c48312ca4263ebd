package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// flight is one FetchRequest and its result. Its goroutine owns it until done is closed.
type flight struct {
	done   chan struct{}
	leader int32
	alone  bool // requests a single partition
	least  bool // requests the smallest possible answer
	asks   []ask

	maxBytes               int32
	maxAnswer, maxUnpacked int
}

func (fl *flight) ended() bool { return isClosed(fl.done) }

// ask is one partition of a flight: the request, then the answer.
type ask struct {
	job.Partition
	id     job.TopicID // topic id for brokers that require one, if the cursor has none
	offset int64
	limit  int32
	epoch  int32 // of the leader
	since  int32 // leader epoch under which the log was known to reach known; -1: unknown
	known  int64

	came    bool  // the response contains this partition
	err     error // of the request, or the partition's error code
	fetched kgo.FetchPartition
	next    int64
	bytes   int   // of keys and values
	sent    int   // bytes of the received batches
	over    int64 // size of the first batch if it was truncated
	end     int64 // the offset after a batch that cannot be read; 0: unknown
	stuck   bool  // whole batches were received, but none reaches offset
	later   bool  // more batches were received than are unpacked at once
	empty   bool  // nothing was received below the last stable offset
	again   bool  // and other partitions did not fill the answer: fetch it alone
	hole    bool  // the log seems to have no records from offset to the last stable offset
	log     job.Range
	logErr  error // why the log could not be read
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fly sends the request, decodes the response and requests what is needed to interpret it.
func (f *Fetcher) fly(fl *flight) {
	if asks := fl.unproven(); len(asks) > 0 {
		f.prove(f.ctx, fl.leader, asks)
	}
	if fl.settled() {
		return
	}
	resp, err := f.cl.Broker(int(fl.leader)).Request(f.ctx, f.request(fl))
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.FetchResponse).ErrorCode)
	}
	if err != nil {
		for i := range fl.asks {
			if fl.asks[i].err == nil {
				fl.asks[i].err = err
			}
		}
		return
	}
	fl.decode(resp.(*kmsg.FetchResponse), f.unpack)
	f.investigate(fl)
}

// byName is a FetchRequest in the last version that identifies topics by name.
type byName struct{ *kmsg.FetchRequest }

// MaxVersion returns that version.
func (byName) MaxVersion() int16 { return 12 }

func (f *Fetcher) request(fl *flight) kmsg.Request {
	req := kmsg.NewPtrFetchRequest()
	named := false
	req.ReplicaID = -1
	req.MaxWaitMillis = int32(f.config.MaxWait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = fl.maxBytes
	req.IsolationLevel = 1 // read_committed
	req.SessionID, req.SessionEpoch = 0, -1
	for _, a := range fl.asks {
		if a.err != nil {
			continue // already has an error
		}
		named = named || a.topicID() == nameID(a.Topic)
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition = a.ID
		p.CurrentLeaderEpoch = a.epoch
		p.FetchOffset = a.offset
		p.LogStartOffset = -1
		p.PartitionMaxBytes = a.limit
		if req.MaxBytes = max(req.MaxBytes, a.limit); fl.least {
			p.PartitionMaxBytes, req.MaxBytes = 1, 1
		}
		last := len(req.Topics) - 1
		// a topic may occur twice: the order of partitions matters more
		if last < 0 || req.Topics[last].Topic != a.Topic {
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = a.Topic, a.topicID()
			req.Topics = append(req.Topics, t)
			last++
		}
		req.Topics[last].Partitions = append(req.Topics[last].Partitions, p)
	}
	if named {
		return byName{req}
	}
	return req
}

func (a *ask) topicID() [16]byte {
	if a.TopicID != (job.TopicID{}) {
		return a.TopicID
	}
	return a.id
}

// decode fills each ask with its answer.
func (fl *flight) decode(resp *kmsg.FetchResponse, unpack kgo.Decompressor) {
	left := fl.maxAnswer
	for ti := range resp.Topics {
		t := &resp.Topics[ti]
		for pi := range t.Partitions {
			p := &t.Partitions[pi]
			for i := range fl.asks {
				a := &fl.asks[i]
				if a.err == nil && a.ID == p.Partition && (a.Topic == t.Topic || t.Topic == "" && a.topicID() == t.TopicID) {
					b := &bounded{unpack, min(left, fl.maxUnpacked)}
					before := b.left
					a.take(p, b)
					left -= before - b.left
				}
			}
		}
	}
	fl.judgeEmpty()
}

// judgeEmpty interprets empty answers. A broker returns at least one batch for the first partition that has data, and
// fills the rest of its limits with other partitions in any order. Only the answer to a request for a single partition
// therefore proves a hole in the log.
func (fl *flight) judgeEmpty() {
	total, before := 0, 0
	for i := range fl.asks {
		total += fl.asks[i].sent
	}
	for i := range fl.asks {
		a := &fl.asks[i]
		a.hole = a.empty && len(fl.asks) == 1
		a.again = a.empty && !a.hole && (before == 0 || total < int(fl.maxBytes)/2)
		before += a.sent
	}
}

func (a *ask) take(p *kmsg.FetchResponseTopicPartition, unpack kgo.Decompressor) {
	a.came = true
	if a.err = kerr.ErrorForCode(p.ErrorCode); a.err != nil {
		return
	}
	o := kgo.ProcessFetchPartitionOpts{
		Offset: a.offset, IsolationLevel: kgo.ReadCommitted(), Topic: a.Topic, Partition: a.ID,
	}
	a.fetched, a.next = kgo.ProcessFetchPartition(o, p, unpack, nil)
	a.sent = len(p.RecordBatches)
	switch n := len(a.fetched.Records); {
	case a.fetched.Err == nil:
	case n > 0: // a later batch is damaged: the next fetch starts with it
		a.next = a.fetched.Records[n-1].Offset + 1
	case errors.Is(a.fetched.Err, errEnough):
		a.later = true // and there were no records before it
	default:
		a.err = a.fetched.Err
		if packed := (*kgo.ErrDecompressTooLarge)(nil); errors.As(a.err, &packed) {
			a.end = batchEnd(p.RecordBatches, packed.Offset)
		}
	}
	for _, r := range a.fetched.Records {
		a.bytes += len(r.Key) + len(r.Value)
		r.Timestamp = stamped(r.Timestamp)
	}
	if a.err == nil && a.next == a.offset {
		a.over = firstBatch(p.RecordBatches)
		a.end = batchEnd(p.RecordBatches, a.offset)
		a.stuck = a.over == 0 && a.sent > 0 && !a.later
		a.empty = a.sent == 0 && p.LastStableOffset > a.offset
	}
}

// firstBatch returns the size of the first record batch of a response that was truncated inside it, otherwise 0.
func firstBatch(raw []byte) int64 {
	const header = 12 // first offset and length; the length counts the bytes after it
	if len(raw) == 0 {
		return 0
	}
	if len(raw) < header {
		return header
	}
	size := header + int64(int32(uint32(raw[8])<<24|uint32(raw[9])<<16|uint32(raw[10])<<8|uint32(raw[11])))
	if size <= int64(len(raw)) {
		return 0
	}
	return size
}

// batchEnd returns the offset after the batch that contains offset, from the batch headers of a response, or 0 if no
// batch contains it.
func batchEnd(raw []byte, offset int64) int64 {
	const header, magicAt, deltaAt = 12, 16, 23
	for len(raw) >= deltaAt+4 {
		first := int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // an offset
		size := header + int64(int32(binary.BigEndian.Uint32(raw[8:])))
		if raw[magicAt] != 2 || size <= header {
			return 0
		}
		if end := first + int64(binary.BigEndian.Uint32(raw[deltaAt:])) + 1; first <= offset && offset < end {
			return end
		}
		if size > int64(len(raw)) {
			return 0
		}
		raw = raw[size:]
	}
	return 0
}

// investigate asks the leader about answers that are ambiguous: an offset out of range, and an empty answer below the
// last stable offset.
func (f *Fetcher) investigate(fl *flight) {
	for i := range fl.asks {
		a := &fl.asks[i]
		one := []job.Partition{a.Partition}
		switch {
		case outOfRange(a.err):
			start := listOffsets(f.ctx, f.cl, fl.leader, one, nil, atStart, false)[0]
			end := listOffsets(f.ctx, f.cl, fl.leader, one, nil, atEnd, false)[0]
			a.log, a.logErr = job.Range{From: start.offset, To: end.offset}, errorsFirst(start.err, end.err)
		case a.hole:
			a.hole = f.local(f.ctx, fl.leader, a)
		}
	}
}

// local reports whether the broker itself holds the offset. A log that is partly in tiered storage may answer empty
// because that storage is slow; such an answer is not a hole.
func (f *Fetcher) local(ctx context.Context, leader int32, a *ask) bool {
	l := listOffsets(ctx, f.cl, leader, []job.Partition{a.Partition}, nil, atLocalStart, false)[0]
	if l.err != nil {
		return unsupported(l.err)
	}
	return l.offset <= a.offset
}

func (a *ask) String() string { return fmt.Sprintf("%s at offset %d", a.Partition, a.offset) }
