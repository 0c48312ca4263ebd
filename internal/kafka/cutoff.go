package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A log can become shorter: a leader is elected that lacks the newest writes, or a broker restarts without data that it
// had not flushed. Records that the old leader had acknowledged are then lost, and other records are written at the
// same offsets. Once the log has grown again, offsets alone do not show this, but leader epochs do: all data up to
// offset n under epoch e is intact if the log's part of epochs up to e ends at n or later (KIP-101, KIP-320).

// unproven returns the asks whose cursor was valid under an earlier leader epoch than the current one.
func (fl *flight) unproven() []*ask {
	var out []*ask
	for i := range fl.asks {
		if a := &fl.asks[i]; a.since >= 0 && a.since < a.epoch {
			out = append(out, a)
		}
	}
	return out
}

// prove asks the leader where the log's part of the cursors' epochs ends. A cursor beyond that gets a *GapError. If the
// request fails, the ask gets its error and is repeated later.
func (f *Fetcher) prove(ctx context.Context, leader int32, asks []*ask) {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	for _, a := range asks {
		t := kmsg.NewOffsetForLeaderEpochRequestTopic()
		t.Topic = a.Topic
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = a.ID, a.epoch, a.since
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		a.err = fmt.Errorf("broker %d did not return the end of epoch %d of %s", leader, a.since, a.Partition)
	}
	resp, err := f.cl.Broker(int(leader)).Request(ctx, req)
	if err != nil {
		for _, a := range asks {
			if a.err = err; unsupported(err) {
				a.err = nil
			}
		}
		return
	}
	for _, t := range resp.(*kmsg.OffsetForLeaderEpochResponse).Topics {
		for _, p := range t.Partitions {
			for _, a := range asks {
				if a.Topic == t.Topic && a.ID == p.Partition {
					a.err = a.proof(p)
				}
			}
		}
	}
}

// proof checks the leader's answer for one partition. An epoch unknown to the broker proves nothing.
func (a *ask) proof(p kmsg.OffsetForLeaderEpochResponseTopicPartition) error {
	err := kerr.ErrorForCode(p.ErrorCode)
	switch {
	case unsupported(err):
		return nil
	case err != nil:
		return err
	case p.LeaderEpoch < 0 || p.LeaderEpoch > a.since || p.EndOffset < 0 || p.EndOffset >= a.known:
		return nil
	}
	return &GapError{Partition: a.Partition, Wanted: a.known, Start: -1, End: p.EndOffset, Cut: true, Epoch: a.since}
}

// settled reports whether each cursor of the flight already has an error, so that nothing is left to fetch.
func (fl *flight) settled() bool {
	for i := range fl.asks {
		if fl.asks[i].err == nil {
			return false
		}
	}
	return true
}
