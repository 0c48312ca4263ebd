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
	"github.com/kappactl/kappactl/internal/retry"
)

// The special timestamps of ListOffsets.
const (
	atStart      = -2
	atEnd        = -1
	atLocalStart = -4 // lower offsets are in tiered storage
)

// offsetTries bounds how often partitions with a temporary error are retried within one call.
const offsetTries = 3

// Offsets returns where the log of every partition currently starts and ends. A partition that fails has its error in
// Err. If a topic does not exist the error is a *MissingTopicError, and the facts of the other topics are returned with
// it.
func (a *Admin) Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error) {
	return a.offsets(ctx, names, atStart)
}

// OffsetsAt is Offsets with Start set to the first offset whose timestamp is at or after at, or to the end if there is
// none.
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
			if err := retry.Sleep(ctx, backoff(try)); err != nil {
				return err
			}
		}
	})
	if err != nil && !Final(err) {
		return nil, err
	}
	return facts, err
}

// offsetsOnce asks the leaders listed in m once. missing is the first topic that does not exist.
func (a *Admin) offsetsOnce(ctx context.Context, m metadata, names []string, start int64) (facts []job.PartitionFacts,
	missing, err error,
) {
	leaders := make(map[int32][]int) // indexes of facts by leader
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

// listAll fills the facts at these indexes from their leader. It lists the start first and the end last, so that start
// <= stable <= end.
func listAll(ctx context.Context, cl *kgo.Client, leader int32, facts []job.PartitionFacts, at []int, start int64) {
	parts, epochs := make([]job.Partition, len(at)), make([]int32, len(at))
	for i, f := range at {
		parts[i], epochs[i] = facts[f].Partition, facts[f].LeaderEpoch
	}
	starts := listOffsets(ctx, cl, leader, parts, epochs, start, false)
	stables := listOffsets(ctx, cl, leader, parts, epochs, atEnd, true)
	ends := listOffsets(ctx, cl, leader, parts, epochs, atEnd, false)
	for i, n := range at {
		f := &facts[n]
		s, l, e := starts[i], stables[i], ends[i]
		if f.Err = errors.Join(s.err, l.err, e.err); f.Err != nil {
			f.Err = errorsFirst(s.err, l.err, e.err)
			continue
		}
		f.Start, f.LastStable, f.End = s.offset, l.offset, e.offset
		if f.Start < 0 { // no record at or after the requested time
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

// listOffsets asks one broker, in the order of parts. stable asks as a read_committed reader. If epochs are given, one
// per partition, a broker with another leader epoch refuses with a retriable error, so that epoch and offsets belong
// together.
func listOffsets(
	ctx context.Context, cl *kgo.Client, broker int32, parts []job.Partition, epochs []int32, at int64, stable bool,
) []listed {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if stable {
		req.IsolationLevel = 1
	}
	out := make([]listed, len(parts))
	index := make(map[string]map[int32]int)
	for i, p := range parts {
		out[i] = listed{offset: -1, err: fmt.Errorf("broker %d did not answer for this partition", broker)}
		if index[p.Topic] == nil {
			index[p.Topic] = make(map[int32]int)
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		index[p.Topic][p.ID] = i
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.CurrentLeaderEpoch, rp.Timestamp = p.ID, -1, at
		if epochs != nil {
			rp.CurrentLeaderEpoch = epochs[i]
		}
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

// retriable reports whether a retry may supply a missing answer.
func retriable(facts []job.PartitionFacts) bool {
	for _, f := range facts {
		if f.Err != nil && (kerr.IsRetriable(f.Err) || !answered(f.Err)) {
			return true
		}
	}
	return false
}
