package kafka

import (
	"crypto/tls"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Config says how to reach the brokers.
type Config struct {
	Brokers  []string    // HOST:PORT; the port defaults to 9092
	ClientID string      // default kappactl
	TLS      *tls.Config // nil: plain text; without a ServerName that of the broker's address
	Login    *Login      // nil: nobody in particular
}

const (
	dialTimeout = 3 * time.Second
	// readTimeout is how long a broker may take beyond the time that a request itself allows.
	readTimeout = 5 * time.Second
	// maxRead is the largest response a client takes in. A single record batch over it can never be read.
	maxRead = 256 << 20
)

// Options turns the configuration into options of a client: the one place that does.
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
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.Login != nil {
		opts = append(opts, kgo.SASL(c.Login))
	}
	return opts
}

// NewClient makes a client with connections of its own: one for live and one for each replay worker.
func NewClient(c Config, extra ...kgo.Opt) (*kgo.Client, error) {
	if len(c.Brokers) == 0 {
		return nil, errNoBrokers
	}
	return kgo.NewClient(append(c.Options(), extra...)...)
}

// refusedPause is the pause after a refusal that only a person can lift.
const refusedPause = 5 * time.Second

// backoff is the pause before try n (from 1): 100 ms, doubling up to 2 s.
func backoff(n int) time.Duration {
	return min(100*time.Millisecond<<min(max(n-1, 0), 5), 2*time.Second)
}
