package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// flight is one FetchRequest and what came of it. Its goroutine owns it until done is closed.
type flight struct {
	done   chan struct{}
	leader int32
	alone  bool // one partition
	least  bool // and as few bytes as the broker gives
	asks   []ask

	maxBytes               int32
	maxAnswer, maxUnpacked int
}

func (fl *flight) ended() bool { return isClosed(fl.done) }

// ask is one partition of a flight: the question, then the answer.
type ask struct {
	job.Partition
	id     job.TopicID // for brokers with topic ids, when the cursor has none
	offset int64
	limit  int32
	epoch  int32 // of the leader
	since  int32 // under which leader epoch the log was known up to known; -1: it was not
	known  int64

	came    bool  // the response has this partition
	err     error // of the request, or the partition's error code
	fetched kgo.FetchPartition
	next    int64
	bytes   int   // of keys and values
	sent    int   // bytes of the batches that came
	over    int64 // size of the first batch, when it was cut off
	stuck   bool  // batches came, whole ones, and none reaches offset
	later   bool  // batches came that are more than is taken at once
	empty   bool  // nothing came, below the last stable offset
	again   bool  // and not because others filled the answer: to be asked by itself
	hole    bool  // the log seems to hold nothing from offset up to the last stable offset
	log     job.Range
	logErr  error // log could not be read
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fly sends the request, decodes the response and asks what has to be known to judge it.
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

// byName is a request of the last version that names topics.
type byName struct{ *kmsg.FetchRequest }

// MaxVersion is that version.
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
			continue // settled before
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
		if last < 0 || req.Topics[last].Topic != a.Topic { // the same topic may come twice: order matters more
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

// decode gives each ask its answer.
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

// judgeEmpty says what empty answers mean. A broker gives the first partition that has data at least one batch, and later ones
// what is left of its bounds, in the order that it likes: only the answer to a question for one partition shows a hole in the log.
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
	o := kgo.ProcessFetchPartitionOpts{Offset: a.offset, IsolationLevel: kgo.ReadCommitted(), Topic: a.Topic, Partition: a.ID}
	a.fetched, a.next = kgo.ProcessFetchPartition(o, p, unpack, nil)
	a.sent = len(p.RecordBatches)
	switch n := len(a.fetched.Records); {
	case a.fetched.Err == nil:
	case n > 0: // a batch behind them is damaged: it is met again when nothing stands before it
		a.next = a.fetched.Records[n-1].Offset + 1
	case errors.Is(a.fetched.Err, errEnough):
		a.later = true // and nothing before it had records
	default:
		a.err = a.fetched.Err
	}
	for _, r := range a.fetched.Records {
		a.bytes += len(r.Key) + len(r.Value)
		r.Timestamp = stamped(r.Timestamp)
	}
	if a.err == nil && a.next == a.offset {
		a.over = firstBatch(p.RecordBatches)
		a.stuck = a.over == 0 && a.sent > 0 && !a.later
		a.empty = a.sent == 0 && p.LastStableOffset > a.offset
	}
}

// firstBatch is the size of the first record batch of a response that was cut off inside it, else 0.
func firstBatch(raw []byte) int64 {
	const header = 12 // first offset and length; the length counts what follows
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

// investigate asks the leader about answers that cannot be judged by themselves: an offset out of range, and an empty
// answer below the last stable offset.
func (f *Fetcher) investigate(fl *flight) {
	for i := range fl.asks {
		a := &fl.asks[i]
		one := []job.Partition{a.Partition}
		switch {
		case outOfRange(a.err):
			start := listOffsets(f.ctx, f.cl, fl.leader, one, atStart, false)[0]
			end := listOffsets(f.ctx, f.cl, fl.leader, one, atEnd, false)[0]
			a.log, a.logErr = job.Range{From: start.offset, To: end.offset}, errorsFirst(start.err, end.err)
		case a.hole:
			a.hole = f.local(f.ctx, fl.leader, a)
		}
	}
}

// local says whether an offset is in the part of the log that the broker itself holds. A log that is partly in tiered
// storage may answer empty because the other storage is slow, and then an empty answer is not a hole.
func (f *Fetcher) local(ctx context.Context, leader int32, a *ask) bool {
	l := listOffsets(ctx, f.cl, leader, []job.Partition{a.Partition}, atLocalStart, false)[0]
	if l.err != nil {
		return unsupported(l.err)
	}
	return l.offset <= a.offset
}

func (a *ask) String() string { return fmt.Sprintf("%s at offset %d", a.Partition, a.offset) }
