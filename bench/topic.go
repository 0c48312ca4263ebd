package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/kafka"
)

// topic is a topic with what a right replay of it has to show.
type topic struct {
	name    string
	records int64
	bytes   int64
	sum     int64 // of duration_ms; of delay
	keys    int64 // rows of the view; 0 = not known
}

const (
	seed        = 20_260_101
	largeRecord = 4 << 20 // from here on a broker has to be told, and batches hold one record
)

// content is how a topic is written.
type content struct {
	name       string
	records    int
	partitions int
	codec      string
	keys       int // how many keys there may be
	largest    int // bytes of a record, when it is more than a broker takes by itself
	// record gives record i: its value, which of the keys it counts for, and the amount that is summed. The value may
	// share its memory with those of other records only where it does not change.
	record func(r *rand.Rand, i int) (value []byte, key int, amount int64)
}

// write makes the topic; the caller takes it away with dropTopic.
func (b *bench) write(ctx context.Context, c content) (topic, error) {
	t := topic{name: c.name, records: int64(c.records)}
	codec, err := codecOf(c.codec)
	if err != nil {
		return t, err
	}
	if err := b.makeTopic(ctx, c.name, c.partitions, c.largest); err != nil {
		return t, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(t.name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(int32(max(1_000_000, c.largest+1<<16))),
		kgo.MaxBufferedRecords(200_000), kgo.MaxBufferedBytes(128<<20), kgo.ProducerLinger(10*time.Millisecond))
	if err != nil {
		return t, err
	}
	defer cl.Close()
	began := time.Now()
	var once sync.Once
	var failed error
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // made-up data
	seen := make([]bool, c.keys)
	for i := range c.records {
		value, key, amount := c.record(random, i)
		seen[key] = true
		t.sum += amount
		t.bytes += int64(len(value))
		cl.Produce(ctx, &kgo.Record{Value: value, Partition: int32(i % c.partitions)}, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return t, err
	}
	for _, s := range seen {
		if s {
			t.keys++
		}
	}
	b.say("wrote %d records of %.0f bytes to %s in %.1fs, compression %s", t.records, float64(t.bytes)/float64(t.records),
		t.name, time.Since(began).Seconds(), c.codec)
	return t, failed
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), fmt.Errorf("compression %s: want none, lz4 or zstd", name)
}

func (b *bench) makeTopic(ctx context.Context, name string, partitions, largest int) error {
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: b.brokers})
	if err != nil {
		return err
	}
	defer admin.Close()
	settings := map[string]string{"retention.ms": "-1"}
	if largest > 0 {
		settings["max.message.bytes"] = fmt.Sprint(largest + 1<<16)
	}
	return admin.CreateTopic(ctx, name, int32(partitions), settings)
}

// dropTopic gives the disk back.
func (b *bench) dropTopic(ctx context.Context, name string) {
	err := b.deleteTopic(context.WithoutCancel(ctx), name)
	if err != nil {
		b.say("delete topic %s: %v", name, err)
	}
}

// writeFlights loads the 3 M flights of the examples.
func (b *bench) writeFlights(ctx context.Context) error {
	file, err := exec.CommandContext(ctx, "scripts/fetch-flights.sh").Output()
	if err != nil {
		return err
	}
	b.flights = topic{name: "flights"}
	loaded, err := devstack.Load(ctx, devstack.LoadConfig{
		Kafka: kafka.Config{Brokers: b.brokers}, File: strings.TrimSpace(string(file)), Topic: b.flights.name,
		Partitions: b.partitions,
	})
	if err != nil {
		return err
	}
	b.flights.records, b.flights.bytes = loaded.Records, loaded.Bytes
	b.say("wrote %d flights in %.1fs", loaded.Records, loaded.Seconds)
	return nil
}
