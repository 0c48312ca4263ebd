package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
)

// variant is what gives one row of the result, or several.
type variant struct {
	part  string
	names []string
	run   func(context.Context) ([]measure, error)
}

func (b *bench) variants() []variant {
	deploy := func(name, job string, workers int, t *topic) func(context.Context) ([]measure, error) {
		return func(ctx context.Context) ([]measure, error) {
			m, err := b.deploy(ctx, fmt.Sprintf("%s-%d", name, workers), fmt.Sprintf(job, workers), *t)
			return []measure{m}, err
		}
	}
	clients := fmt.Sprintf("franz-go, %d clients, records thrown away", min(b.workers, b.partitions))
	return []variant{
		{partLimit, []string{clients, "the same with Go's own GOGC"}, b.limits},
		{partDeploy, []string{fmt.Sprintf("kappactl deploy, %d workers", b.workers)}, deploy("pageviews", viewsJob, b.workers, &b.views)},
		{partOne, []string{"kappactl deploy, 1 worker"}, deploy("pageviews", viewsJob, 1, &b.views)},
		{partFlights, []string{fmt.Sprintf("kappactl deploy, %d workers, 3 M flights", b.workers)}, deploy("flights", flightsJob, b.workers, &b.flights)},
		{partStreams, []string{fmt.Sprintf("Kafka Streams, %d threads", b.workers)}, b.streams},
		{partFlink, []string{fmt.Sprintf("Flink SQL cold, parallelism %d", b.workers), "Flink SQL warm"}, b.flink},
	}
}

// rounds runs all variants in turn, so that what else the machine does hits all of them.
func (b *bench) rounds(ctx context.Context) error {
	for n := range b.options.rounds {
		for _, v := range b.variants() {
			if !b.wants(v.part) {
				continue
			}
			all, err := v.run(ctx)
			if errors.Is(err, errSkipped) {
				b.say("round %d  %s: %v", n+1, v.names[0], err)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", v.names[0], err)
			}
			for i, m := range all {
				name := v.names[i]
				if _, known := b.measured[name]; !known {
					b.order = append(b.order, name)
				}
				b.measured[name] = append(b.measured[name], m)
				b.say("round %d  %-45s %6.2fs  %s/s", n+1, name, m.Served, million(m.rate()))
			}
		}
	}
	return nil
}

func (m measure) rate() float64 { return float64(m.Records) / m.Served }

func million(n float64) string { return fmt.Sprintf("%.2f M", n/1e6) }

// of is the median of one figure over the rounds.
func of(all []measure, figure func(measure) float64) float64 {
	values := make([]float64, len(all))
	for i, m := range all {
		values[i] = figure(m)
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// report prints the medians, each rate also as a ratio to the limit of its own round.
func (b *bench) report() error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tbuilt\tserved\trecords/s\tMB/s\tof the limit\trecords/core-s\tpeak memory\tend of replay to served")
	limit := b.measured[b.variants()[0].names[0]]
	for _, name := range b.order {
		all := b.measured[name]
		ratio := "-"
		if len(limit) == len(all) {
			ratios := make([]measure, len(all))
			for i := range all {
				ratios[i].Served = all[i].rate() / limit[i].rate()
			}
			ratio = fmt.Sprintf("%.2f", of(ratios, func(m measure) float64 { return m.Served }))
		}
		built, tail := "-", "-"
		if all[0].Built > 0 {
			built = seconds(of(all, func(m measure) float64 { return m.Built }))
			tail = seconds(of(all, func(m measure) float64 { return m.Tail }))
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t%.0f MB\t%s\n", name, built,
			seconds(of(all, func(m measure) float64 { return m.Served })),
			million(of(all, measure.rate)),
			of(all, func(m measure) float64 { return float64(m.Bytes) / m.Served / 1e6 }), ratio,
			million(of(all, func(m measure) float64 { return float64(m.Records) / m.CPU })),
			of(all, func(m measure) float64 { return float64(m.Peak) / 1e6 }), tail)
		if err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.flip != nil {
		_, err := fmt.Fprintf(b.out, "%d flips under %d readers: %d reads, %d errors, longest wait %.0f ms\n",
			b.flips, flipReaders, b.flip.Reads, b.flip.Errors, b.flip.Longest*1000)
		if err != nil {
			return err
		}
	}
	if b.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"rounds": b.measured, "flip": b.flip}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.json, append(text, '\n'), 0o600)
}

func seconds(s float64) string { return fmt.Sprintf("%.2fs", s) }
