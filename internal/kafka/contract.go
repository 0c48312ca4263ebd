package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// Config says how to reach the brokers.
type Config struct {
	Brokers  []string
	ClientID string // default kappactl
	// TLS and SASL come with the security issue; keep room: Options() is the one place that turns Config into kgo options.
}

// Admin asks the cluster for facts; safe for concurrent use; one per process.
type Admin struct{}

func NewAdmin(c Config) (*Admin, error)                                              { panic("contract") }
func (a *Admin) Close()                                                              { panic("contract") }
func (a *Admin) Ping(ctx context.Context) error                                      { panic("contract") } // *ConnectError, one clear line
func (a *Admin) ClusterID(ctx context.Context) (string, error)                       { panic("contract") }
func (a *Admin) Topics(ctx context.Context, names []string) ([]job.TopicFacts, error) { panic("contract") } // fresh metadata (own MetadataRequest, not kadm's cache), offsets and configs; a missing topic is *MissingTopicError
func (a *Admin) Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error) { panic("contract") } // fresh metadata + start, LSO, end; a partition's failure is in its Err, the others are still answered
func (a *Admin) OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error) { panic("contract") } // Start = first offset at or after at, or the end
func (a *Admin) Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error) { panic("contract") } // bytes on disk, nil when log dirs cannot be read
func (a *Admin) CreateTopic(ctx context.Context, name string, partitions int32, configs map[string]string) error { panic("contract") }
func (a *Admin) CommitGroup(ctx context.Context, group string, next map[job.Partition]int64) error { panic("contract") } // advisory offsets
func (a *Admin) DeleteGroup(ctx context.Context, group string) error { panic("contract") } // nil when it does not exist

// NewClient makes a client for fetching: the same for live and for each replay worker (one client each: own connections).
func NewClient(c Config, extra ...kgo.Opt) (*kgo.Client, error) { panic("contract") }

// Cursor is where to fetch one partition from.
type Cursor struct {
	job.Partition
	Next        int64
	LeaderEpoch int32
}

// Fetched is the answer for one partition.
type Fetched struct {
	job.Partition
	Records    []*kgo.Record // committed data records from the cursor on; no control records, no aborted ones
	Next       int64         // next offset to ask for; moves past markers and compacted offsets
	LeaderEpoch int32
	LogStart   int64
	LastStable int64
	End        int64
	Bytes      int   // of keys and values
	Err        error // *GapError, *RecreatedError, *MissingTopicError, *TooLargeError are final; others are passing and already backed off
}

// FetchConfig bounds a Fetcher. Zero fields mean the defaults.
type FetchConfig struct {
	MaxPartitionBytes int32         // default 1 MiB
	MaxBytes          int32         // default 16 MiB
	MaxWait           time.Duration // default 250 ms
}

// Fetcher sends raw FetchRequests (facts.md), read_committed, sessionless, one request per leader at a time. One goroutine owns it.
type Fetcher struct{}

func NewFetcher(cl *kgo.Client, c FetchConfig) *Fetcher { panic("contract") }

// Fetch asks every leader of the cursors once and returns what came. It returns when ALL leaders have answered or when data
// has come and the rest stay silent for MaxWait. Leader changes, connection loss and missing leaders are handled inside (metadata refresh, back-off) and
// show as Fetched.Err of a passing kind with no records.
func (f *Fetcher) Fetch(ctx context.Context, cursors []Cursor) ([]Fetched, error) { panic("contract") }

// GapError: the log no longer (or not yet) holds the wanted offset. In errors.go in the real package, with ConnectError, MissingTopicError, RecreatedError, TooLargeError.
type GapError struct {
	job.Partition
	Wanted, Start, End int64
}
