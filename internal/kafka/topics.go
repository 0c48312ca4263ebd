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

// Topics returns ids, offsets and settings of the topics, in the order of names. A topic that does not exist is a
// *MissingTopicError; one that the user may not read is a *job.Refusal that names the missing right.
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

// IDs returns the cluster's id and the ids of those topics that exist.
func (a *Admin) IDs(ctx context.Context, names []string) (cluster string, ids map[string]job.TopicID, err error) {
	err = a.call(ctx, func(ctx context.Context) error {
		m, err := requestMetadata(ctx, a.cl, names)
		if err != nil {
			return err
		}
		cluster, ids = m.cluster, make(map[string]job.TopicID, len(m.topics))
		for name, t := range m.topics {
			if t.err == nil {
				ids[name] = t.id
			}
		}
		return nil
	})
	return cluster, ids, err
}

// settings fills in the topic's configuration. A topic that is only compacted keeps the newest record of each key
// without a time limit.
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
		f.RetentionMS, f.RetentionBytes = -1, -1 // such a topic has these settings too, but they have no effect
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

// Sizes returns the bytes on disk of each partition's largest replica, compressed. It returns nil without an error if
// the client may not read log dirs.
func (a *Admin) Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error) {
	var sizes map[job.Partition]int64
	err := a.call(ctx, func(ctx context.Context) error {
		m, err := requestMetadata(ctx, a.cl, names)
		if err != nil {
			return err
		}
		// A request for named partitions fails as a whole if one is unknown. Request all and filter.
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

// Names returns the cluster's topics that the user may see, sorted, without internal ones.
func (a *Admin) Names(ctx context.Context) ([]string, error) {
	var names []string
	err := a.call(ctx, func(ctx context.Context) error {
		req := kmsg.NewPtrMetadataRequest() // no list of topics requests all
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
