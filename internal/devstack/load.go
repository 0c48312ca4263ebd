package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// LoadConfig configures a load. Zero fields mean the defaults given.
type LoadConfig struct {
	Kafka      kafka.Config
	File       string           // Parquet, CSV or NDJSON, by its extension
	Topic      string           // created if missing, with retention.ms=-1 so that old event times are kept
	Partitions int              // of the topic; default: those it has, 4 for a new one
	Key        string           // column of the record key, which determines the partition; default: no key, round robin
	Limit      int64            // rows; 0 = all
	Rate       int64            // rows per second; 0 = as fast as possible
	Progress   func(Loaded)     // called periodically while loading, never concurrently; may be nil
	Now        func() time.Time // default time.Now
}

// Loaded is the result of a load: records that the brokers have acknowledged.
type Loaded struct {
	Topic      string  `json:"topic"`
	Partitions int     `json:"partitions"`
	Created    bool    `json:"created"` // the topic was created
	Records    int64   `json:"records"`
	Bytes      int64   `json:"bytes"` // of keys and values
	Seconds    float64 `json:"seconds"`
}

// Load writes each row of a file as one JSON record, in the file's order, and returns when the brokers have
// acknowledged all of them. Errors that a person has to fix (no such file, unknown column, …) are a *job.Refusal with
// exit code 2. After other errors the records counted in Loaded are in the topic.
func Load(ctx context.Context, c LoadConfig) (Loaded, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.check(); err != nil {
		return Loaded{}, err
	}
	rows, err := openRows(ctx, c.File, c.Key)
	if err != nil {
		return Loaded{}, err
	}
	loaded, err := c.load(ctx, rows)
	return loaded, errors.Join(err, rows.close())
}

func (c LoadConfig) check() error {
	switch {
	case c.Topic == "":
		return refuse("name the topic with --topic", "no topic to load into")
	case !validTopic(c.Topic):
		return refuse("use letters, digits, '.', '_' and '-', at most 249 of them", "%q is not a valid topic name", c.Topic)
	case c.Partitions < 0:
		return refuse("", "--partitions %d: want 1 or more", c.Partitions)
	case c.Limit < 0:
		return refuse("", "--limit %d: want 1 or more", c.Limit)
	case c.Rate < 0:
		return refuse("", "--rate %d/s: want 1/s or more", c.Rate)
	}
	return nil
}

func refuse(next, format string, args ...any) *job.Refusal {
	return &job.Refusal{Code: job.ExitUsage, Cause: fmt.Sprintf(format, args...), Next: next}
}

func (c LoadConfig) load(ctx context.Context, rows rows) (Loaded, error) {
	// The first rows are read before the topic is created, so that an unreadable file leaves nothing behind.
	batch, err := rows.next(ctx)
	if errors.Is(err, io.EOF) {
		return Loaded{}, refuse("", "%s holds no rows", c.File)
	}
	if err != nil {
		return Loaded{}, err
	}
	topic, err := c.ensureTopic(ctx)
	if err != nil {
		return Loaded{}, err
	}
	w, err := newWriter(c, topic)
	if err != nil {
		return Loaded{}, err
	}
	defer w.close()
	for err == nil {
		if c.Limit > 0 {
			batch = batch[:min(int64(len(batch)), c.Limit-w.sent)]
		}
		if err = w.write(ctx, batch); err != nil {
			break
		}
		if c.Limit > 0 && w.sent >= c.Limit {
			err = io.EOF
			break
		}
		batch, err = rows.next(ctx)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return w.finish(ctx, err)
}
