package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// consumeCommand makes this program consume a topic and do nothing with it, as a process of its own.
const consumeCommand = "consume"

// consumed is the output of that process.
type consumed struct {
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
	Peak    int64   `json:"peak"`
}

// agentGOGC is the setting of the garbage collector that an agent gives itself.
const agentGOGC = "400"

// limits is how fast the topic can be read here at all: with the collector set as the agent's, and as Go has it.
func (b *bench) limits(ctx context.Context) ([]measure, error) {
	tuned, err := b.limit(ctx, agentGOGC)
	if err != nil {
		return nil, err
	}
	plain, err := b.limit(ctx, "100")
	return []measure{tuned, plain}, err
}

func (b *bench) limit(ctx context.Context, gogc string) (measure, error) {
	cmd := exec.CommandContext(ctx, b.self, consumeCommand, "-brokers", strings.Join(b.brokers, ","), "-topic",
		b.views.name,
		"-clients", strconv.Itoa(b.workers), "-partitions", strconv.Itoa(b.partitions), "-records",
		strconv.FormatInt(b.views.records, 10))
	cmd.Stderr, cmd.Env = b.progress, append(os.Environ(), "GOGC="+gogc)
	out, err := cmd.Output()
	if err != nil {
		return measure{}, fmt.Errorf("consume: %w", err)
	}
	var c consumed
	if err := json.Unmarshal(out, &c); err != nil {
		return measure{}, err
	}
	if c.Records != b.views.records || c.Bytes != b.views.bytes {
		return measure{}, fmt.Errorf("consumed %d records of %d bytes, the topic has %d of %d", c.Records, c.Bytes,
			b.views.records, b.views.bytes)
	}
	return measure{Records: c.Records, Bytes: c.Bytes, Served: c.Seconds, CPU: c.CPU, Peak: c.Peak}, nil
}

func consumeChild(ctx context.Context, args []string, out io.Writer) error {
	var brokers, name string
	var clients, partitions int
	var records int64
	f := flag.NewFlagSet(consumeCommand, flag.ContinueOnError)
	f.StringVar(&brokers, "brokers", "", "")
	f.StringVar(&name, "topic", "", "")
	f.IntVar(&clients, "clients", 1, "")
	f.IntVar(&partitions, "partitions", 1, "")
	f.Int64Var(&records, "records", 0, "of the topic")
	if err := f.Parse(args); err != nil {
		return err
	}
	clients = min(clients, partitions)
	counts := make([]consumed, clients)
	began := time.Now()
	var g errgroup.Group
	for n := range clients {
		offsets := map[int32]kgo.Offset{}
		var share int64
		for p := n; p < partitions; p += clients {
			offsets[int32(p)] = kgo.NewOffset().AtStart()
			share += (records + int64(partitions-1-p)) / int64(partitions)
		}
		g.Go(func() error {
			return consume(ctx, brokers, map[string]map[int32]kgo.Offset{name: offsets}, share, &counts[n])
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	total := consumed{Seconds: time.Since(began).Seconds()}
	for _, c := range counts {
		total.Records += c.Records
		total.Bytes += c.Bytes
	}
	var err error
	if total.CPU, total.Peak, err = usage(0); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(total)
}

// consume reads share records with the fetch settings of a replay worker: 1 MiB at once, one byte is enough, 250 ms
// wait.
func consume(ctx context.Context, brokers string, from map[string]map[int32]kgo.Offset, share int64,
	c *consumed,
) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumePartitions(from),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxPartitionBytes(1<<20), kgo.FetchMaxBytes(1<<20), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for c.Records < share {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			c.Records++
			c.Bytes += int64(len(r.Value))
		})
	}
	return nil
}
