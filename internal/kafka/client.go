package kafka

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/retry"
)

// Config is the configuration of the connections to the brokers.
type Config struct {
	Brokers  []string    // HOST:PORT; the port defaults to 9092
	ClientID string      // default kappactl
	TLS      *tls.Config // nil: plain text; an empty ServerName means the broker's host name
	Login    *Login      // nil: no SASL login
	// FetchedBytes counts the bytes of fetch responses as received from the network; nil: not counted.
	FetchedBytes *atomic.Int64
}

// fetchedBytes counts the bytes of fetch responses.
type fetchedBytes struct{ sum *atomic.Int64 }

var _ kgo.HookBrokerRead = fetchedBytes{}

// OnBrokerRead is called by the client for each response.
func (f fetchedBytes) OnBrokerRead(_ kgo.BrokerMetadata, key int16, read int, _, _ time.Duration, _ error) {
	if key == kmsg.Fetch.Int16() {
		f.sum.Add(int64(read))
	}
}

const (
	dialTimeout = 3 * time.Second
	// readTimeout is how long a broker may take beyond the wait that the request itself allows.
	readTimeout = 5 * time.Second
	// maxRead is the largest response that a client accepts. A larger record batch can never be read.
	maxRead = 256 << 20
)

// Options returns the client options of the configuration. All clients are built from them.
func (c Config) Options() []kgo.Opt {
	id := c.ClientID
	if id == "" {
		id = "kappactl"
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(id),
		kgo.DialTimeout(dialTimeout),
		kgo.RequestTimeoutOverhead(readTimeout),
		kgo.RequestRetries(3),
		kgo.RetryTimeout(readTimeout),
		kgo.RetryBackoffFn(backoff),
		kgo.BrokerMaxReadBytes(maxRead),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
	if c.FetchedBytes != nil {
		opts = append(opts, kgo.WithHooks(fetchedBytes{c.FetchedBytes}))
	}
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.Login != nil {
		opts = append(opts, kgo.SASL(c.Login))
	}
	return opts
}

// NewClient creates a client with its own connections. Live processing and each replay worker have one.
func NewClient(c Config, extra ...kgo.Opt) (*kgo.Client, error) {
	if len(c.Brokers) == 0 {
		return nil, errNoBrokers
	}
	return kgo.NewClient(append(c.Options(), extra...)...)
}

// refusedPause is the pause after a refusal that does not pass without a person's action.
const refusedPause = 5 * time.Second

// backoff returns the pause before try n (from 1): 100 ms, doubling up to 2 s.
func backoff(n int) time.Duration {
	return retry.Backoff(n, 100*time.Millisecond, 2*time.Second)
}
