package archiver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/s3test"
)

// inBucket moves the archive of the world to a bucket, which is reached as s.
func (w *world) inBucket(g *s3test.Gateway, s archive.S3) {
	w.t.Helper()
	name, _ := g.Bucket(w.t)
	w.at, w.location = &archive.Locations{S3: s}, "s3://"+name+"/archives"
	w.t.Cleanup(w.at.Close)
	w.want(time.Second, 64<<20)
}

// errorOf returns the error of the last attempt at partition 0.
func (w *world) errorOf() (text string) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `SELECT coalesce(max(error), '') FROM kappactl.archive_position`).Scan(&text); err != nil {
		w.t.Fatal(err)
	}
	return text
}

// Half of the requests are dropped, cut off, held up or answered 503: every offset is archived once all the same.
func TestABucketThatFailsForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	proxy := s3test.NewProxy(t, g)
	var requests atomic.Int64
	proxy.Judge(func(*http.Request) s3test.Fault {
		requests.Add(1)
		return []s3test.Fault{
			s3test.Drop, s3test.Break, s3test.Busy, s3test.Hang, s3test.Slow, s3test.Pass, s3test.Pass, s3test.Pass,
		}[rand.IntN(8)]
	})
	s := g.S3()
	s.Endpoint, s.Stall = proxy.Endpoint, 300*time.Millisecond
	w.inBucket(g, s)
	w.start(archiver.Config{})
	p := w.partition(0)
	for i := range int64(5) {
		kafkatest.Produce(t, brokers, w.topic, 0, fmt.Sprint("v", i))
		w.archived(p, i+1)
	}
	proxy.Judge(func(*http.Request) s3test.Fault { return s3test.Pass })
	w.equal(p, 0, 5)
	w.sound(0)
}

// What stops a bucket is in the status of the archive, and ends when it is put right.
func TestABucketThatIsPutRightGoesOn(t *testing.T) {
	t.Parallel()
	g := s3test.Start(t)
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	var secret atomic.Value
	secret.Store("wrong")
	s := g.S3()
	s.Keys = func(ctx context.Context) (string, string, error) {
		return s3test.AccessKey, secret.Load().(string), nil
	}
	w.inBucket(g, s)
	kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
	w.start(archiver.Config{})
	kafkatest.Until(t, "the error is noted", func() bool { return strings.Contains(w.errorOf(), "the secret does not belong to the access key") })
	secret.Store(s3test.Secret)
	w.equal(w.partition(0), 0, 2)
	if text := w.errorOf(); text != "" {
		t.Errorf("the error stays: %s", text)
	}
}
