package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess"
)

type resumeOptions struct {
	actOptions
	gaps []reprocess.Gap
}

func newResume(a *app, run func(context.Context, resumeOptions) error) *cobra.Command {
	o := resumeOptions{actOptions: actOptions{app: a}}
	var accept []string
	cmd := o.command(&cobra.Command{
		Use:   "resume JOB [VERSION]",
		Short: "Let a paused version go on where it stopped",
		Long: `Let a paused version go on exactly where it stopped. A version that the log no longer holds records for stands still at the
gap, live or not; with --accept-gap TOPIC/PARTITION:FROM-TO it goes on behind it. The range must be the one that status names; what is
lost is written down, once and for all: the version counts none of these records, verify leaves them out, and history says who
accepted it. Where the log was cut off after they had been counted they stay counted, and verify says so.`,
		Example: "  kappactl resume pageviews v2\n  kappactl resume pageviews v1 --accept-gap pageviews/0:1200-1900",
	}, func(cmd *cobra.Command) error {
		for _, text := range accept {
			g, ok := parseGap(text)
			if !ok {
				return usage(cmd, "%q is not TOPIC/PARTITION:FROM-TO", text)
			}
			o.gaps = append(o.gaps, g)
		}
		if len(o.gaps) > 0 && o.target.Number == nil {
			return usage(cmd, "--accept-gap needs a VERSION")
		}
		return run(cmd.Context(), o)
	})
	cmd.Flags().StringArrayVar(&accept, "accept-gap", nil, "go on without these offsets, `TOPIC/PARTITION:FROM-TO`, TO not included; can be repeated")
	return cmd
}

func runResume(ctx context.Context, o resumeOptions) error {
	do := o.act(reprocess.Resume)
	do.args.AcceptGap = o.gaps
	return do.run(ctx)
}

// parseGap reads TOPIC/PARTITION:FROM-TO, as status and the answer of a wait print it.
func parseGap(text string) (g reprocess.Gap, ok bool) {
	place, offsets, found := cutLast(text, ":")
	topic, partition, split := cutLast(place, "/")
	from, to, ranged := strings.Cut(offsets, "-")
	if !found || !split || !ranged || topic == "" {
		return g, false
	}
	id, err := strconv.ParseInt(partition, 10, 32)
	first, err1 := strconv.ParseInt(from, 10, 64)
	end, err2 := strconv.ParseInt(to, 10, 64)
	if errors.Join(err, err1, err2) != nil || id < 0 || first < 0 || first >= end {
		return g, false
	}
	return reprocess.Gap{Topic: topic, Partition: int32(id), From: first, To: end}, true
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
