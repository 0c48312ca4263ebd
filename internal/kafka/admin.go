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
)

// callTimeout bounds every call of Admin.
const callTimeout = 8 * time.Second

// Admin asks the cluster for facts. It is safe for concurrent use; a process needs one.
type Admin struct {
	cl      *kgo.Client
	brokers []string
}

// NewAdmin makes an Admin. It opens no connection.
func NewAdmin(c Config) (*Admin, error) {
	cl, err := NewClient(c)
	if err != nil {
		return nil, err
	}
	return &Admin{cl: cl, brokers: c.Brokers}, nil
}

// Close ends the connections.
func (a *Admin) Close() { a.cl.Close() }

// call runs f with a deadline and tells a cluster that cannot be reached (*ConnectError) from one that refuses.
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

// Ping asks a broker for the least it can answer. A cluster that cannot be reached is a *ConnectError.
func (a *Admin) Ping(ctx context.Context) error {
	_, err := a.ClusterID(ctx)
	return err
}

// ClusterID is the cluster's own id.
func (a *Admin) ClusterID(ctx context.Context) (string, error) {
	var id string
	err := a.call(ctx, func(ctx context.Context) error {
		m, err := requestMetadata(ctx, a.cl, nil)
		id = m.cluster
		return err
	})
	return id, err
}

// CreateTopic makes a topic with the cluster's default replication and waits until every partition has a leader. A name
// that is taken is kerr.TopicAlreadyExists.
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
		return fmt.Errorf("make topic %s: %w", name, err)
	}
	return nil
}

// awaitLeaders waits until a new topic can be used: brokers learn of it one after the other.
func (a *Admin) awaitLeaders(ctx context.Context, name string, partitions int) error {
	for try := 1; ; try++ {
		m, err := requestMetadata(ctx, a.cl, []string{name})
		if err != nil {
			return err
		}
		if t := m.topics[name]; t.err == nil && len(t.parts) >= partitions && t.leaderless() == 0 {
			return nil
		}
		if err := pause(ctx, backoff(try)); err != nil {
			return err
		}
	}
}

// CommitGroup writes offsets to a consumer group without members, for other people's lag tools. Nothing reads them back.
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

// DeleteGroup removes a consumer group; one that does not exist is fine.
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

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
