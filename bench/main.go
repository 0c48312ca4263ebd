package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	records    int
	partitions int
	rounds     int
	workers    int
	codec      string
	what       []string
	binary     string
	profile    string
	json       string
	flips      int
}

// The parts of the benchmark, in the order in which a round runs them.
const (
	partLimit   = "limit"
	partDeploy  = "deploy"
	partOne     = "one"
	partFlights = "flights"
	partStreams = "streams"
	partFlink   = "flink"
	partFlip    = "flip"
)

func parts() []string {
	return []string{partLimit, partDeploy, partOne, partFlights, partStreams, partFlink, partFlip}
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
	b := &bench{options: o, out: out, progress: progress}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return err
	}
	if err := b.rounds(ctx); err != nil {
		return err
	}
	if b.wants(partFlip) {
		if err := b.flipBench(ctx); err != nil {
			return fmt.Errorf("flip under readers: %w", err)
		}
	}
	return b.report()
}

func parse(args []string, progress io.Writer) (options, error) {
	var o options
	what := strings.Join(parts(), ",")
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(progress)
	f.IntVar(&o.records, "records", 10_000_000, "records of the page view topic")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of the topics")
	f.IntVar(&o.rounds, "rounds", 3, "rounds; the medians are printed")
	f.IntVar(&o.workers, "workers", 0, "replay workers, and consuming clients of the limit (0: one a CPU)")
	f.StringVar(&o.codec, "compression", "none", "of the page view topic: none, lz4 or zstd")
	f.StringVar(&what, "what", what, "what to measure, separated by commas")
	f.StringVar(&o.binary, "kappactl", "", "the binary to measure (default: built from this tree)")
	f.StringVar(&o.profile, "profile", "", "folder to write CPU profiles of the agent to")
	f.IntVar(&o.flips, "flips", 100, "promotes and rollbacks of the flip benchmark, together")
	f.StringVar(&o.json, "json", "", "file to write all measurements to")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.what = strings.Split(what, ",")
	for _, w := range o.what {
		if !slices.Contains(parts(), w) {
			return o, fmt.Errorf("-what %s: want some of %s", w, strings.Join(parts(), ","))
		}
	}
	if f.NArg() > 0 || o.records < 1 || o.rounds < 1 || o.partitions < 1 || o.workers < 0 {
		return o, fmt.Errorf("arguments %q make no sense: see -help", args)
	}
	return o, nil
}
