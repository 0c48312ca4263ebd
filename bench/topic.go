package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
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

// The page views: as facts of a public site would be, over three days in order of time.
const (
	pages  = 1000
	hours  = 72
	seed   = 20_260_101
	window = hours * time.Hour
)

// write makes the topics that the parts need.
func (b *bench) write(ctx context.Context) error {
	if slices.ContainsFunc(b.what, func(part string) bool { return part != partFlights }) {
		if err := b.writePageviews(ctx); err != nil {
			return fmt.Errorf("write the page views: %w", err)
		}
	}
	if b.wants(partFlights) {
		if err := b.writeFlights(ctx); err != nil {
			return fmt.Errorf("write the flights: %w", err)
		}
	}
	return nil
}

func (b *bench) codecs() (kgo.CompressionCodec, error) {
	switch b.codec {
	case "none":
		return kgo.NoCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), fmt.Errorf("-compression %s: want none, lz4 or zstd", b.codec)
}

func (b *bench) writePageviews(ctx context.Context) error {
	codec, err := b.codecs()
	if err != nil {
		return err
	}
	t := topic{name: "pageviews", records: int64(b.records)}
	if err := b.makeTopic(ctx, t.name); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(t.name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerLinger(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	began := time.Now()
	var once sync.Once
	var failed error
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // made-up data
	seen := make([]bool, pages*hours)
	for i := range b.records {
		value, page, hour, duration := pageview(random, i, b.records)
		seen[page*hours+hour] = true
		t.sum += duration
		t.bytes += int64(len(value))
		cl.Produce(ctx, &kgo.Record{Value: value, Partition: int32(i % b.partitions)}, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	for _, s := range seen {
		if s {
			t.keys++
		}
	}
	b.views = t
	b.say("wrote %d page views of %.0f bytes in %.1fs, compression %s", t.records, float64(t.bytes)/float64(t.records), time.Since(began).Seconds(), b.codec)
	return failed
}

// pageview is record i of n.
func pageview(r *rand.Rand, i, n int) (value []byte, page, hour int, duration int64) {
	after := time.Duration(float64(window) * float64(i) / float64(n)).Truncate(time.Millisecond)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after)
	page, hour, duration = r.IntN(pages), int(after/time.Hour), r.Int64N(5000)
	value = make([]byte, 0, 176)
	value = append(value, `{"user_id":"u`...)
	value = pad(value, uint64(r.IntN(100_000)), 6, 10)
	value = append(value, `","url":"/products/page-`...)
	value = pad(value, uint64(page), 3, 10)
	value = at.AppendFormat(append(value, `","ts":"`...), "2006-01-02T15:04:05.000Z07:00")
	value = strconv.AppendInt(append(value, `","duration_ms":`...), duration, 10)
	value = append(value, `,"agent":"Mozilla/5.0 (X11; Linux 6.1)","session":"`...)
	value = pad(value, r.Uint64(), 16, 16)
	return append(value, `"}`...), page, hour, duration
}

// pad appends v in base with at least width digits.
func pad(b []byte, v uint64, width, base int) []byte {
	s := strconv.FormatUint(v, base)
	for range width - len(s) {
		b = append(b, '0')
	}
	return append(b, s...)
}

func (b *bench) makeTopic(ctx context.Context, name string) error {
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: b.brokers})
	if err != nil {
		return err
	}
	defer admin.Close()
	return admin.CreateTopic(ctx, name, int32(b.partitions), map[string]string{"retention.ms": "-1"})
}

// writeFlights loads the 3 M flights of the examples.
func (b *bench) writeFlights(ctx context.Context) error {
	file, err := exec.CommandContext(ctx, "scripts/fetch-flights.sh").Output()
	if err != nil {
		return err
	}
	b.flights = topic{name: "flights"}
	loaded, err := devstack.Load(ctx, devstack.LoadConfig{
		Kafka: kafka.Config{Brokers: b.brokers}, File: strings.TrimSpace(string(file)), Topic: b.flights.name, Partitions: b.partitions,
	})
	if err != nil {
		return err
	}
	b.flights.records, b.flights.bytes = loaded.Records, loaded.Bytes
	b.say("wrote %d flights in %.1fs", loaded.Records, loaded.Seconds)
	return nil
}
