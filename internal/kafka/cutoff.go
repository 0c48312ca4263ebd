package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A log can get shorter: a leader that had not taken part in the newest writes is elected, or a broker comes back without what
// had not reached its disk. What the old leader had confirmed is gone then, and other records are written to the same offsets.
// Offsets alone do not show that once the log has grown again. Leader epochs do: everything known up to offset n under epoch e
// still stands when the log's part of epochs up to e ends at n or later (KIP-101, KIP-320).

// unproven are the asks whose cursor was valid under an earlier leader epoch than that of the leader now.
func (fl *flight) unproven() []*ask {
	var out []*ask
	for i := range fl.asks {
		if a := &fl.asks[i]; a.since >= 0 && a.since < a.epoch {
			out = append(out, a)
		}
	}
	return out
}

// prove asks the leader where the log's part of the cursors' epochs ends. A cursor beyond that gets a *GapError as its error; one
// that could not be asked about gets the reason, and is asked again.
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
		a.err = fmt.Errorf("broker %d did not say where epoch %d of %s ends", leader, a.since, a.Partition)
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

// proof judges the answer for one partition. An epoch that the broker does not know proves nothing either way.
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

// settled says that the flight has nothing left to fetch: each of its cursors has an error already.
func (fl *flight) settled() bool {
	for i := range fl.asks {
		if fl.asks[i].err == nil {
			return false
		}
	}
	return true
}
