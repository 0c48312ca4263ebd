package speedlayer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/query"
)

// consumer is the consuming client of a live version. The live loop owns it.
type consumer struct {
	client  *kgo.Client
	fetcher *archive.Reader
}

// batching computes the batches of a live version. The live loop owns it.
type batching struct {
	session *query.Session
	decoder *format.Decoder
	finder  *finder
}

// openConsumer makes the client, unless it is there.
func (l *live) openConsumer() error {
	if l.consumer != nil {
		return nil
	}
	client, err := kafka.NewClient(l.Kafka, kgo.WithHooks(throttled{metrics: l.Metrics}))
	if err != nil {
		return err
	}
	fetches := l.followFetches(min(max(l.every(), 10*time.Millisecond), 250*time.Millisecond))
	fetches.Cluster = l.cluster
	l.consumer = &consumer{client, l.reader(kafka.NewFetcher(client, fetches), l.livePolicy())}
	return nil
}

// openBatching starts the query session with what belongs to it, unless it is there.
func (l *live) openBatching(ctx context.Context) (err error) {
	if l.batching != nil {
		return nil
	}
	if err := l.compile(ctx); err != nil {
		return err
	}
	b := &batching{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.decoder, err = format.New(l.spec.Source, l.compiled.Fields); err != nil {
		return err
	}
	if b.session, err = query.Open(ctx, l.followSession()); err != nil {
		return err
	}
	if b.finder, err = newFinder(l.run, b.session, b.decoder); err != nil {
		return err
	}
	l.batching = b
	return nil
}

func (b *batching) close() error {
	var err error
	b.finder.close()
	if b.session != nil {
		err = b.session.Close()
	}
	if b.decoder != nil {
		b.decoder.Close()
	}
	return err
}

// letGo closes what reading needs.
func (l *live) letGo() {
	if b := l.batching; b != nil {
		l.batching = nil
		if err := b.close(); err != nil {
			l.quiet.warn("a query session does not close", err)
		}
	}
	if r := l.consumer; r != nil {
		l.consumer = nil
		r.fetcher.Close()
		r.client.Close()
	}
}

// bound gives the query session and the fetcher their share of the memory as it is now: other versions come and go.
func (l *live) bound() {
	if l.batching != nil {
		if err := l.batching.session.Bound(l.followSession()); err != nil {
			l.quiet.warn("a query session does not close", err)
		}
	}
	if l.consumer != nil {
		l.consumer.fetcher.Bound(l.followFetches(0))
		l.consumer.fetcher.Prefer(l.livePolicy())
	}
}
