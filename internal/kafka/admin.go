package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/retry"
)

// callTimeout bounds each call of Admin.
const callTimeout = 8 * time.Second

// Admin reads facts about the cluster: topics, offsets, groups, rights. It is safe for concurrent use; a process needs
// only one.
type Admin struct {
	cl      *kgo.Client
	brokers []string
}

// NewAdmin creates an Admin. It opens no connection.
func NewAdmin(c Config) (*Admin, error) {
	cl, err := NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Admin{cl: cl, brokers: c.Brokers}, nil
}

// Close closes the connections.
func (a *Admin) Close() { a.cl.Close() }

// call runs f with a deadline. It returns a *ConnectError for a cluster that cannot be reached, and other errors
// unchanged.
func (a *Admin) call(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := explainLogin(a.cl, f(limited))
	var connect *ConnectError
	switch {
	case Refused(err):
		return connectError(a.brokers, err)
	case err == nil, answered(err), Final(err), errors.As(err, &connect):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kgo.ErrClientClosed):
		return err
	}
	return connectError(a.brokers, err)
}

// Ping sends a broker the smallest possible request. It returns a *ConnectError if the cluster cannot be reached.
func (a *Admin) Ping(ctx context.Context) error {
	_, err := a.ClusterID(ctx)
	return err
}

// ClusterID returns the cluster's id.
func (a *Admin) ClusterID(ctx context.Context) (string, error) {
	var id string
	err := a.call(ctx, func(ctx context.Context) error {
		m, err := requestMetadata(ctx, a.cl, nil)
		id = m.cluster
		return err
	})
	return id, err
}

// ClusterWithin is ClusterID for a person who waits: brokers that do not answer within patience, or before ctx ends,
// are a *ConnectError.
func (a *Admin) ClusterWithin(ctx context.Context, patience time.Duration) (string, error) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, err := a.ClusterID(short)
	switch {
	case err == nil || short.Err() == nil || errors.Is(ctx.Err(), context.Canceled):
		return id, err
	case ctx.Err() != nil:
		return "", &ConnectError{Brokers: a.brokers, Err: ctx.Err()}
	}
	return "", &ConnectError{Brokers: a.brokers, Err: fmt.Errorf("no answer in %s", patience)}
}

// CreateTopic creates a topic with the cluster's default replication and waits until every partition has a leader. It
// returns kerr.TopicAlreadyExists if the name is taken.
func (a *Admin) CreateTopic(ctx context.Context, name string, partitions int32, configs map[string]string) error {
	values := make(map[string]*string, len(configs))
	for k, v := range configs {
		values[k] = &v
	}
	err := a.call(ctx, func(ctx context.Context) error {
		if _, err := kadm.NewClient(a.cl).CreateTopic(ctx, partitions, -1, values, name); err != nil {
			return err
		}
		return a.awaitLeaders(ctx, name, int(partitions))
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// awaitLeaders waits until every partition of a new topic has a leader. Brokers learn of a topic one after another.
func (a *Admin) awaitLeaders(ctx context.Context, name string, partitions int) error {
	for try := 1; ; try++ {
		m, err := requestMetadata(ctx, a.cl, []string{name})
		if err != nil {
			return err
		}
		if t := m.topics[name]; t.err == nil && len(t.parts) >= partitions && t.leaderless() == 0 {
			return nil
		}
		if err := retry.Sleep(ctx, backoff(try)); err != nil {
			return err
		}
	}
}

// CommitGroup commits offsets to a consumer group without members, for external lag tools. kappactl never reads them
// back.
func (a *Admin) CommitGroup(ctx context.Context, group string, next map[job.Partition]int64) error {
	var offsets kadm.Offsets
	for p, n := range next {
		offsets.Add(kadm.Offset{Topic: p.Topic, Partition: p.ID, At: n, LeaderEpoch: -1})
	}
	err := a.call(ctx, func(ctx context.Context) error {
		return kadm.NewClient(a.cl).CommitAllOffsets(ctx, group, offsets)
	})
	if err != nil {
		return fmt.Errorf("commit offsets of group %s: %w", group, err)
	}
	return nil
}

// GroupOffsets are the committed offsets of a group, by topic/partition; empty when it has none or does not exist.
func (a *Admin) GroupOffsets(ctx context.Context, group string) (map[string]int64, error) {
	out := map[string]int64{}
	err := a.call(ctx, func(ctx context.Context) error {
		found, err := kadm.NewClient(a.cl).FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		for _, o := range found.Sorted() {
			switch {
			case o.Err != nil:
				return o.Err
			case o.At >= 0:
				out[job.Partition{Topic: o.Topic, ID: o.Partition}.String()] = o.At
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("read offsets of group %s: %w", group, err)
	}
	return out, nil
}

// DeleteGroup deletes a consumer group. A group that does not exist is not an error.
func (a *Admin) DeleteGroup(ctx context.Context, group string) error {
	err := a.call(ctx, func(ctx context.Context) error {
		_, err := kadm.NewClient(a.cl).DeleteGroup(ctx, group)
		return err
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("delete group %s: %w", group, err)
	}
	return nil
}
