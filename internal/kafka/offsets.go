package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// The moments that ListOffsets knows beside a time in milliseconds.
const (
	atStart      = -2
	atEnd        = -1
	atLocalStart = -4 // below it a log is in tiered storage
)

// offsetTries bounds how often partitions with a passing error are asked again within one call.
const offsetTries = 3

// Offsets says where the log of every partition starts and ends now. The failure of a partition is in its Err and the
// others are still answered. When a topic does not exist the error is a *MissingTopicError, beside the answers for the
// topics that do.
func (a *Admin) Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error) {
	return a.offsets(ctx, names, atStart)
}

// OffsetsAt is Offsets with Start being the first offset whose timestamp is at or after at, or the end where there is none.
func (a *Admin) OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error) {
	return a.offsets(ctx, names, max(at.UnixMilli(), 0))
}

func (a *Admin) offsets(ctx context.Context, names []string, start int64) ([]job.PartitionFacts, error) {
	var facts []job.PartitionFacts
	err := a.call(ctx, func(ctx context.Context) error {
		for try := 1; ; try++ {
			var missing error
			m, err := requestMetadata(ctx, a.cl, names)
			if err != nil {
				return err
			}
			facts, missing, err = a.offsetsOnce(ctx, m, names, start)
			if err != nil {
				return err
			}
			if try == offsetTries || !retriable(facts) {
				return missing
			}
			if err := pause(ctx, backoff(try)); err != nil {
				return err
			}
		}
	})
	if err != nil && !Final(err) {
		return nil, err
	}
	return facts, err
}

// offsetsOnce asks the leaders that m names. missing is the first topic that does not exist.
func (a *Admin) offsetsOnce(ctx context.Context, m metadata, names []string, start int64) (facts []job.PartitionFacts, missing, err error) {
	leaders := make(map[int32][]int) // leader to indexes of facts
	for _, name := range names {
		t, ok := m.topics[name]
		switch {
		case !ok || errors.Is(t.err, kerr.UnknownTopicOrPartition):
			if missing == nil {
				missing = &MissingTopicError{Topic: name}
			}
			continue
		case t.err != nil && !kerr.IsRetriable(t.err):
			return nil, nil, fmt.Errorf("topic %s: %w", name, t.err)
		}
		for _, p := range t.parts {
			f := job.PartitionFacts{
				Partition:   job.Partition{Topic: name, TopicID: t.id, ID: p.id},
				LeaderEpoch: p.epoch, Start: -1, LastStable: -1, End: -1,
			}
			if p.leader < 0 {
				f.Err = errNoLeader
			} else {
				leaders[p.leader] = append(leaders[p.leader], len(facts))
			}
			facts = append(facts, f)
		}
	}
	var wg sync.WaitGroup
	for leader, at := range leaders {
		wg.Go(func() { listAll(ctx, a.cl, leader, facts, at, start) })
	}
	wg.Wait()
	return facts, missing, ctx.Err()
}

// listAll fills the facts at these indexes from their leader: start first, end last, so that start <= stable <= end.
func listAll(ctx context.Context, cl *kgo.Client, leader int32, facts []job.PartitionFacts, at []int, start int64) {
	parts := make([]job.Partition, len(at))
	for i, f := range at {
		parts[i] = facts[f].Partition
	}
	starts := listOffsets(ctx, cl, leader, parts, start, false)
	stables := listOffsets(ctx, cl, leader, parts, atEnd, true)
	ends := listOffsets(ctx, cl, leader, parts, atEnd, false)
	for i, n := range at {
		f := &facts[n]
		s, l, e := starts[i], stables[i], ends[i]
		if f.Err = errors.Join(s.err, l.err, e.err); f.Err != nil {
			f.Err = errorsFirst(s.err, l.err, e.err)
			continue
		}
		f.Start, f.LastStable, f.End = s.offset, l.offset, e.offset
		if f.Start < 0 { // no record at or after the time asked for
			f.Start = f.End
		}
	}
}

func errorsFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// listed is the answer of ListOffsets for one partition.
type listed struct {
	offset int64
	err    error
}

// listOffsets asks one broker, in the order of parts. stable asks as a read_committed reader.
func listOffsets(ctx context.Context, cl *kgo.Client, broker int32, parts []job.Partition, at int64, stable bool) []listed {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if stable {
		req.IsolationLevel = 1
	}
	out := make([]listed, len(parts))
	index := make(map[string]map[int32]int)
	for i, p := range parts {
		out[i] = listed{offset: -1, err: fmt.Errorf("broker %d did not answer for it", broker)}
		if index[p.Topic] == nil {
			index[p.Topic] = make(map[int32]int)
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		index[p.Topic][p.ID] = i
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.CurrentLeaderEpoch, rp.Timestamp = p.ID, -1, at
		for n := range req.Topics {
			if req.Topics[n].Topic == p.Topic {
				req.Topics[n].Partitions = append(req.Topics[n].Partitions, rp)
			}
		}
	}
	resp, err := cl.Broker(int(broker)).Request(ctx, req)
	if err != nil {
		for i := range out {
			out[i].err = fmt.Errorf("broker %d: %w", broker, cause(explainLogin(cl, err)))
		}
		return out
	}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if i, ok := index[t.Topic][p.Partition]; ok {
				out[i] = listed{offset: p.Offset, err: kerr.ErrorForCode(p.ErrorCode)}
			}
		}
	}
	return out
}

// retriable says whether asking again may give an answer that is missing.
func retriable(facts []job.PartitionFacts) bool {
	for _, f := range facts {
		if f.Err != nil && (kerr.IsRetriable(f.Err) || !answered(f.Err)) {
			return true
		}
	}
	return false
}
