package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	records     int
	partitions  int
	rounds      int
	peerRounds  int
	workers     int
	codec       string
	what        []string
	binary      string
	profile     string
	json        string
	from        string
	documents   []string
	flips       int
	live        time.Duration
	liveRate    int
	keys        []int
	growth      []int
	jobs        []int
	matrixBytes int
	within      time.Duration
}

// The parts of the benchmark, in the order in which a run takes them; the first eight take turns, -rounds times.
const (
	partLimit   = "limit"
	partDeploy  = "deploy"
	partArchive = "archive"
	partBatch   = "batch"
	partOne     = "one"
	partFlights = "flights"
	partStreams = "streams"
	partFlink   = "flink"
	partKeys    = "keys"
	partGrowth  = "growth"
	partLive    = "live"
	partFlip    = "flip"
	partSplit   = "split"
	partJobs    = "jobs"
	partMatrix  = "matrix"
)

func parts() []string {
	return []string{
		partLimit, partDeploy, partArchive, partBatch, partOne, partFlights, partStreams, partFlink, partKeys, partGrowth,
		partLive,
		partFlip, partSplit, partJobs, partMatrix,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == consumeCommand {
		return consumeChild(ctx, args[1:], out)
	}
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if o.from != "" {
		r, err := readResult(o.from)
		if err != nil {
			return err
		}
		return errors.Join(r.print(out), r.publish(o.documents))
	}
	b := &bench{options: o, out: out, progress: progress}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return err
	}
	b.all(ctx)
	err = b.result.print(out)
	if n := len(b.result.Failed); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d parts failed: see above", n))
	}
	return err
}

// all measures every part that is wanted. One that fails, or that no time is left for, is noted, and the others go on;
// after each the files are written, so that what was measured is kept whatever follows.
func (b *bench) all(ctx context.Context) {
	steps := []struct {
		parts []string
		run   func(context.Context) error
	}{
		{parts()[:slices.Index(parts(), partKeys)], b.rounds},
		{[]string{partKeys}, b.keysBench},
		{[]string{partGrowth}, b.growthBench},
		{[]string{partLive}, b.liveBench},
		{[]string{partFlip}, b.flipBench},
		{[]string{partSplit}, b.splitBench},
		{[]string{partJobs}, b.jobsBench},
		{[]string{partMatrix}, b.matrixBench},
	}
	ctx, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	for _, s := range steps {
		if !slices.ContainsFunc(s.parts, b.wants) {
			continue
		}
		if err := s.run(ctx); err != nil {
			b.failed(strings.Join(s.parts, ","), err)
		}
		if err := b.keep(); err != nil {
			b.failed("writing what was measured", err)
		}
	}
}

// failed notes a part that gave no result.
func (b *bench) failed(part string, err error) {
	b.say("%s: %v", part, err)
	b.result.Failed = append(b.result.Failed, failure{part, err.Error()})
}

// keep writes the files.
func (b *bench) keep() error {
	var err error
	if b.json != "" {
		err = b.result.save(b.json)
	}
	return errors.Join(err, b.result.publish(b.documents))
}

func parse(args []string, progress io.Writer) (options, error) {
	var o options
	what, documents, keys, growth := strings.Join(parts(),
		","), "", "1000,100000,1000000,10000000", "1000000,3000000,10000000,30000000"
	jobs := "1,10,100,1000"
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(progress)
	f.IntVar(&o.records, "records", 10_000_000, "records of the page view topic, and of the topic of many keys")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of the topics")
	f.IntVar(&o.rounds, "rounds", 3, "rounds; the medians are printed")
	f.IntVar(&o.peerRounds, "peer-rounds", 0,
		"in how many of the rounds the peers, which take longest, run too (0: in all)")
	f.IntVar(&o.workers, "workers", 0, "replay workers, and consuming clients of the limit (0: one a CPU)")
	f.StringVar(&o.codec, "compression", "none", "of the page view topic: none, lz4 or zstd")
	f.StringVar(&what, "what", what, "what to measure, separated by commas")
	f.StringVar(&o.binary, "kappactl", "", "the binary to measure (default: built from this tree)")
	f.StringVar(&o.profile, "profile", "", "folder to write CPU profiles of the agent to")
	f.IntVar(&o.flips, "flips", 100, "promotes and rollbacks of the flip benchmark, together")
	f.DurationVar(&o.live, "live", time.Minute, "how long each live measurement lasts")
	f.IntVar(&o.liveRate, "live-rate", 20_000, "records a second of the live measurements")
	f.StringVar(&keys, "keys", keys,
		"distinct keys of the replays of many keys; more than -records is as many as -records")
	f.StringVar(&growth, "growth", growth, "records of the replays that show growth")
	f.StringVar(&jobs, "jobs", jobs, "live versions that one agent has")
	f.IntVar(&o.matrixBytes, "matrix-bytes", 200_000_000, "bytes of each topic of the matrix")
	f.DurationVar(&o.within, "within", 2*time.Hour, "end then; what was measured by then is written")
	f.StringVar(&o.json, "json", "", "file to write all measurements to")
	f.StringVar(&o.from, "from", "", "measure nothing and take the measurements from this file of -json")
	f.StringVar(&documents, "write", "",
		"documents, separated by commas, to put tables into, between their bench markers; plots go to images/ beside each")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if documents != "" {
		o.documents = strings.Split(documents, ",")
	}
	o.what = strings.Split(what, ",")
	for _, w := range o.what {
		if !slices.Contains(parts(), w) {
			return o, fmt.Errorf("-what %s: want some of %s", w, strings.Join(parts(), ","))
		}
	}
	var err1, err2, err3 error
	o.keys, err1 = numbers("keys", keys)
	o.growth, err2 = numbers("growth", growth)
	o.jobs, err3 = numbers("jobs", jobs)
	if err := errors.Join(err1, err2, err3); err != nil {
		return o, err
	}
	if f.NArg() > 0 || min(o.records, o.rounds, o.partitions, o.flips, o.liveRate, o.matrixBytes) < 1 || o.workers < 0 ||
		o.live < time.Second {
		return o, fmt.Errorf("arguments %q make no sense: see -help", args)
	}
	return o, nil
}

func numbers(name, text string) ([]int, error) {
	var out []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-%s %s: want numbers, separated by commas", name, text)
		}
		out = append(out, n)
	}
	return out, nil
}
