package kafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// Topics says what the cluster knows about the topics, in the order of names: ids, offsets, settings. A topic that does
// not exist is a *MissingTopicError; one that the user may not read is a *job.Refusal that names the right.
func (a *Admin) Topics(ctx context.Context, names []string) ([]job.TopicFacts, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if err := a.mayRead(ctx, names); err != nil {
		return nil, err
	}
	parts, err := a.Offsets(ctx, names)
	if err != nil {
		return nil, err
	}
	var configs kadm.ResourceConfigs
	err = a.call(ctx, func(ctx context.Context) (err error) {
		configs, err = kadm.NewClient(a.cl).DescribeTopicConfigs(ctx, names...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read topic settings: %w", err)
	}
	facts := make([]job.TopicFacts, len(names))
	for i, name := range names {
		f := job.TopicFacts{Name: name, RetentionMS: -1, RetentionBytes: -1, DeleteRetentionMS: -1}
		for _, p := range parts {
			if p.Topic == name {
				f.ID = p.TopicID
				f.Partitions = append(f.Partitions, p)
			}
		}
		if err := settings(&f, configs); err != nil {
			return nil, fmt.Errorf("read settings of topic %s: %w", name, err)
		}
		facts[i] = f
	}
	return facts, nil
}

// settings fills in what the topic's configuration says. A topic that only compacts keeps the newest of each key for ever.
func settings(f *job.TopicFacts, configs kadm.ResourceConfigs) error {
	rc, err := configs.On(f.Name, nil)
	if err == nil {
		err = rc.Err
	}
	if err != nil {
		return err
	}
	deletes := true
	for _, c := range rc.Configs {
		v := c.MaybeValue()
		switch c.Key {
		case "cleanup.policy":
			policies := strings.Split(strings.ReplaceAll(v, " ", ""), ",")
			f.Compacted, deletes = slices.Contains(policies, "compact"), slices.Contains(policies, "delete")
		case "retention.ms":
			f.RetentionMS = number(v, f.RetentionMS)
		case "retention.bytes":
			f.RetentionBytes = number(v, f.RetentionBytes)
		case "delete.retention.ms":
			f.DeleteRetentionMS = number(v, f.DeleteRetentionMS)
		case "max.message.bytes":
			f.MaxMessageBytes = number(v, f.MaxMessageBytes)
		}
	}
	if !deletes {
		f.RetentionMS, f.RetentionBytes = -1, -1 // they are set on such a topic too, and nothing goes by them
	}
	return nil
}

func number(s string, otherwise int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// Sizes are the bytes on disk of each partition (of its largest replica), compressed as they lie there. It is nil without
// an error when this client may not read log dirs.
func (a *Admin) Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error) {
	var sizes map[job.Partition]int64
	err := a.call(ctx, func(ctx context.Context) error {
		m, err := requestMetadata(ctx, a.cl, names)
		if err != nil {
			return err
		}
		// Asking for named partitions fails as a whole when one of them is unknown, so ask for all and filter.
		var failed error
		for _, shard := range a.cl.RequestSharded(ctx, kmsg.NewPtrDescribeLogDirsRequest()) {
			if shard.Err != nil {
				failed = shard.Err
				continue
			}
			sizes = addSizes(sizes, m, shard.Resp.(*kmsg.DescribeLogDirsResponse))
		}
		if sizes == nil {
			return failed
		}
		return nil
	})
	if err != nil && answered(err) {
		return nil, nil
	}
	return sizes, err
}

func addSizes(sizes map[job.Partition]int64, m metadata, resp *kmsg.DescribeLogDirsResponse) map[job.Partition]int64 {
	if kerr.ErrorForCode(resp.ErrorCode) != nil {
		return sizes
	}
	for _, d := range resp.Dirs {
		if d.ErrorCode != 0 {
			continue
		}
		if sizes == nil {
			sizes = make(map[job.Partition]int64)
		}
		for _, t := range d.Topics {
			tm, ok := m.topics[t.Topic]
			if !ok || tm.err != nil {
				continue
			}
			for _, p := range t.Partitions {
				key := job.Partition{Topic: t.Topic, TopicID: tm.id, ID: p.Partition}
				if !p.IsFuture {
					sizes[key] = max(sizes[key], p.Size)
				}
			}
		}
	}
	return sizes
}

// Names lists the topics of the cluster that are not internal, sorted: those that the user may see.
func (a *Admin) Names(ctx context.Context) ([]string, error) {
	var names []string
	err := a.call(ctx, func(ctx context.Context) error {
		req := kmsg.NewPtrMetadataRequest() // no list of topics asks for all
		resp, err := req.RequestWith(ctx, a.cl)
		if err != nil {
			return err
		}
		names = nil
		for _, t := range resp.Topics {
			if t.Topic != nil && !t.IsInternal && t.ErrorCode == 0 {
				names = append(names, *t.Topic)
			}
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}
