package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// variant produces one or more rows of the result.
type variant struct {
	part  string
	names []string
	run   func(context.Context) ([]measure, error)
}

func (b *bench) variants() []variant {
	deploy := func(name, job string, workers int, t *topic) func(context.Context) ([]measure, error) {
		return func(ctx context.Context) ([]measure, error) {
			m, err := b.deploy(ctx, fmt.Sprintf("%s-%d", name, workers), fmt.Sprintf(job, t.name, workers), *t)
			return []measure{m}, err
		}
	}
	clients := fmt.Sprintf("%s (franz-go, %d clients)", limitName, min(b.workers, b.partitions))
	return []variant{
		{partLimit, []string{clients, "the same, garbage collected as Go does by itself"}, b.limits},
		{
			partDeploy,
			[]string{fmt.Sprintf("%s, %d workers", logName, b.workers)},
			deploy("pageviews", viewsJob, b.workers, &b.views),
		},
		{
			partArchive,
			[]string{fmt.Sprintf("%s, %d workers", rawName, b.workers), fmt.Sprintf("%s, %d workers", typedName, b.workers)},
			b.archivedRounds,
		},
		{partBatch, []string{fmt.Sprintf("%s, %d workers", batchName, b.workers)}, b.batchRounds},
		{partOne, []string{"kappactl deploy, 1 worker"}, deploy("pageviews", viewsJob, 1, &b.views)},
		{
			partFlights,
			[]string{fmt.Sprintf("kappactl deploy, %d workers, 3 M flights", b.workers)},
			deploy("flights", flightsJob, b.workers, &b.flights),
		},
		{partStreams, []string{fmt.Sprintf("Kafka Streams, %d threads", b.workers)}, b.streams},
		{partFlink, []string{fmt.Sprintf("Flink SQL cold, parallelism %d", b.workers), "Flink SQL warm"}, b.flink},
	}
}

// These begin the names of rows that ratios refer to, or are made of.
const (
	limitName = "reading the topic, doing nothing"
	logName   = "kappactl deploy"
	rawName   = "kappactl from its archive"
	typedName = "kappactl from typed columns"
	batchName = "kappactl batch run"
)

// rounds runs all variants in turn, so that what else the machine does hits all of them. A variant that fails is noted
// and takes no part in later rounds.
func (b *bench) rounds(ctx context.Context) error {
	if err := b.writeRounds(ctx); err != nil {
		return err
	}
	defer b.dropTopic(ctx, b.views.name)
	out := map[string]bool{}
	for n := range b.options.rounds {
		for _, v := range b.variants() {
			peer := v.part == partStreams || v.part == partFlink
			if !b.wants(v.part) || out[v.part] || peer && b.peerRounds > 0 && n >= b.peerRounds {
				continue
			}
			all, err := v.run(ctx)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, errSkipped):
				b.say("round %d  %s: %v", n+1, v.names[0], err)
				out[v.part] = true
				continue
			case err != nil:
				b.failed(v.part, err)
				out[v.part] = true
				continue
			}
			for i, m := range all {
				b.result.add(v.names[i], m)
				b.say("round %d  %-45s %6.2fs  %s/s", n+1, v.names[i], m.Served, million(m.rate()))
			}
		}
	}
	return nil
}

// writeRounds makes the topics that the rounds need.
func (b *bench) writeRounds(ctx context.Context) (err error) {
	if b.views, err = b.write(ctx, b.pageviews("pageviews", b.records)); err != nil {
		return fmt.Errorf("write the page views: %w", err)
	}
	if b.wants(partFlights) {
		if err := b.writeFlights(ctx); err != nil {
			return fmt.Errorf("write the flights: %w", err)
		}
	}
	return nil
}

func (r *result) add(name string, m measure) {
	if r.Rounds == nil {
		r.Rounds = map[string][]measure{}
	}
	if _, known := r.Rounds[name]; !known {
		r.Order = append(r.Order, name)
	}
	r.Rounds[name] = append(r.Rounds[name], m)
}

// of is the median of one figure over the rounds.
func of(all []measure, figure func(measure) float64) float64 {
	values := make([]float64, len(all))
	for i, m := range all {
		values[i] = figure(m)
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// ofLimit is the median share of the limit's rate in the same round; 0 when the limit was not measured in every one.
func (r *result) ofLimit(name string) float64 {
	limit, all := r.limit(), r.Rounds[name]
	if len(limit) < len(all) {
		return 0
	}
	ratios := make([]float64, len(all))
	for i := range all {
		ratios[i] = all[i].rate() / limit[i].rate()
	}
	return median(ratios)
}

func (r *result) limit() []measure {
	for _, name := range r.Order {
		if strings.HasPrefix(name, limitName) {
			return r.Rounds[name]
		}
	}
	return nil
}
