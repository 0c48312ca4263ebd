package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/follow"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
)

type devLoadOptions struct {
	*app
	file       string
	topic      string
	partitions int
	key        string
	limit      int64
	rate       rate
}

func newDevLoad(a *app, run func(context.Context, devLoadOptions) error) *cobra.Command {
	o := devLoadOptions{app: a}
	cmd := &cobra.Command{
		Use:   "load FILE",
		Short: "Produce the rows of a Parquet, CSV or NDJSON file to a topic as JSON records",
		Long: `Produce each row of the file as one JSON record with ISO 8601 times. The topic is created when it is missing. It works
against any broker.`,
		Example:     "  kappactl dev load flights.parquet --topic flights --partitions 4 --limit 300000",
		Args:        exactly("FILE"),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			switch {
			case o.topic == "":
				return usage(cmd, "missing flag --topic")
			case o.partitions < 0 || o.partitions > 1000:
				return usage(cmd, "--partitions %d: want 1 to 1000", o.partitions)
			case o.limit < 0:
				return usage(cmd, "--limit %d: want 0 (no limit) or more", o.limit)
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.topic, "topic", "", "`TOPIC` to produce to (required)")
	f.IntVar(&o.partitions, "partitions", 0, "the topic gets `N` partitions when it is created (default: 4)")
	f.StringVar(&o.key, "key", "", "`COLUMN` whose value is the record's key (default: no key)")
	f.Int64Var(&o.limit, "limit", 0, "produce only the first `N` rows")
	f.Var(&o.rate, "rate", "at most this many records a second: 5000/s")
	return cmd
}

func runDevLoad(ctx context.Context, o devLoadOptions) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	brokers, err := kafkaConfig(ctx, settings)
	if err != nil {
		return err
	}
	if err := answering(ctx, brokers); err != nil {
		return err
	}
	started, printed := o.sys.Now(), o.sys.Now()
	every := follow.Slow
	if o.sys.ErrTTY {
		every = progressTerminal
	}
	loaded, err := devstack.Load(ctx, devstack.LoadConfig{
		Kafka: brokers, File: o.file, Topic: o.topic, Partitions: o.partitions, Key: o.key, Limit: o.limit,
		Rate: o.rate.perSecond, Now: o.sys.Now,
		Progress: func(l devstack.Loaded) {
			if now := o.sys.Now(); now.Sub(printed) >= every {
				printed = now
				o.progress("%s into %s", loadLine(l, now.Sub(started)), l.Topic)
			}
		},
	})
	if err != nil {
		if loaded.Records > 0 {
			o.progress("%s are in topic %s", render.Plural(loaded.Records, "record"), loaded.Topic)
		}
		return err
	}
	return o.result(loaded, func(w io.Writer) error {
		made := ""
		if loaded.Created {
			made = " (created)"
		}
		_, err := fmt.Fprintf(w, "%s in topic %s%s with %s\n",
			loadLine(loaded, time.Duration(loaded.Seconds*float64(time.Second))),
			loaded.Topic, made, render.Plural(int64(loaded.Partitions), "partition"))
		return err
	})
}

// answering proves that the brokers are there before a file is read for them.
func answering(ctx context.Context, k kafka.Config) error {
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = admin.ClusterWithin(ctx, brokerPatience)
	return err
}

func loadLine(l devstack.Loaded, took time.Duration) string {
	line := fmt.Sprintf("%s (%s)", render.Plural(l.Records, "record"), render.Bytes(l.Bytes))
	if took > 0 {
		rate := float64(l.Records) / took.Seconds()
		line += " at " + render.Rate(&rate)
	}
	return line
}
