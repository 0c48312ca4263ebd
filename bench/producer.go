package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// producer writes records at a steady rate, and among them probes: numbered records with a key of their own on every
// partition.
type producer struct {
	client     *kgo.Client
	rate       int
	partitions int

	records int64 // of the run goroutine, read after it; the probes among them
	sum     int64

	mu   sync.Mutex
	sent [][]time.Time // when the probes were produced, by partition
}

const (
	produceEvery = 5 * time.Millisecond
	probeEvery   = 20 * time.Millisecond // on every partition
	lookEvery    = 5 * time.Millisecond
	liveHour     = "2026-01-01T10:00:00Z"
)

func (b *bench) newProducer(name string, partitions int) (*producer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.DefaultProduceTopic(name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(5*time.Millisecond))
	return &producer{client: client, rate: b.liveRate, partitions: partitions, sent: make([][]time.Time, partitions)}, err
}

// run produces until ctx is done and all is acknowledged.
func (p *producer) run(ctx context.Context, random *rand.Rand) error {
	var once sync.Once
	var failed error
	produce := func(partition int, value []byte) {
		p.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Value: value, Partition: int32(partition)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					once.Do(func() { failed = err })
				}
			})
	}
	tick := time.NewTicker(produceEvery)
	defer tick.Stop()
	began := time.Now()
	probed := began
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			for want := int64(now.Sub(began).Seconds() * float64(p.rate)); p.records < want; {
				duration := random.Int64N(5000)
				produce(int(p.records)%p.partitions,
					liveRecord(fmt.Sprintf("/products/page-%03d", random.IntN(pages)), duration, 0))
				p.sum += duration
				p.records++
			}
			if now.Sub(probed) >= probeEvery {
				probed = now
				p.probe(produce)
			}
		}
	}
	if err := p.client.Flush(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return failed
}

// probe produces the next probe of every partition.
func (p *producer) probe(produce func(int, []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.partitions {
		p.sent[n] = append(p.sent[n], time.Now())
		produce(n, liveRecord(probeName(n), 0, len(p.sent[n])))
		p.records++
	}
}

func probeName(partition int) string { return fmt.Sprintf("probe-%d", partition) }

func liveRecord(url string, duration int64, seq int) []byte {
	value := append(make([]byte, 0, 176), `{"url":"`...)
	value = append(append(value, url...), `","ts":"`+liveHour+`","duration_ms":`...)
	value = strconv.AppendInt(value, duration, 10)
	value = strconv.AppendInt(append(value, `,"seq":`...), int64(seq), 10)
	return append(value, `,"agent":"Mozilla/5.0 (X11; Linux 6.1)","session":"0123456789abcdef"}`...)
}

// watch polls the view for the newest probe of each partition and returns how many seconds each probe took to become
// visible. It ends when all that were produced are, after done.
func (p *producer) watch(ctx context.Context, conn *pgx.Conn, done <-chan struct{}) ([]float64, error) {
	names, place := make([]string, p.partitions), map[string]int{}
	for n := range names {
		names[n] = probeName(n)
		place[names[n]] = n
	}
	seen := make([]int, p.partitions)
	var waits []float64
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	ended := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		rows, err := conn.Query(ctx,
			`SELECT url, newest FROM public.rolled_up WHERE hour = $1::timestamptz AND url = ANY($2)`, liveHour, names)
		if err != nil {
			return nil, err
		}
		var url string
		var newest int
		found := map[int]int{}
		if _, err := pgx.ForEachRow(rows, []any{&url, &newest},
			func() error { found[place[url]] = newest; return nil }); err != nil {
			return nil, err
		}
		now := time.Now()
		missing := p.visible(found, seen, now, &waits)
		select {
		case <-done:
			if ended.IsZero() {
				ended = now
			}
			if !missing {
				return waits, nil
			}
			if now.Sub(ended) > 30*time.Second {
				return nil, fmt.Errorf("probes were not visible after 30 s")
			}
		default:
		}
	}
}

// visible notes the probes that became visible; missing is true while some are not.
func (p *producer) visible(found map[int]int, seen []int, now time.Time, waits *[]float64) (missing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range seen {
		for ; seen[n] < found[n]; seen[n]++ {
			*waits = append(*waits, now.Sub(p.sent[n][seen[n]]).Seconds())
		}
		missing = missing || seen[n] < len(p.sent[n])
	}
	return missing
}
