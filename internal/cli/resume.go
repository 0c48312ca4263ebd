package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

type resumeOptions struct {
	actOptions
	gaps []ledger.Gap
}

func newResume(a *app, run func(context.Context, resumeOptions) error) *cobra.Command {
	o := resumeOptions{actOptions: actOptions{app: a}}
	var accept []string
	cmd := o.command(&cobra.Command{
		Use:   "resume JOB [VERSION]",
		Short: "Let a version that is paused, or stopped by a fault, go on where it stopped",
		Long: `Let a paused version go on exactly where it stopped, and let one that a fault has stopped, live or not, try again. With
--accept-gap TOPIC/PARTITION:FROM-TO it goes on behind the offsets of a fault: those that the log no longer holds, a record that the
query cannot take, a record batch that is too large. The range must be the one that status names. One record becomes a dead letter with
the reason "skipped". Any other range is noted as a gap: the version counts none of its records, verify leaves them out, and history
says who accepted it. Where the log was cut off after they had been counted they stay counted, and verify says so.`,
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
	cmd.Flags().StringArrayVar(&accept, "accept-gap", nil,
		"go on without these offsets, `TOPIC/PARTITION:FROM-TO`, TO not included; can be repeated")
	return cmd
}

func runResume(ctx context.Context, o resumeOptions) error {
	do := o.act(ledger.Resume)
	do.args.AcceptGap = o.gaps
	return do.run(ctx)
}

// parseGap reads TOPIC/PARTITION:FROM-TO, as status and the answer of a wait print it.
func parseGap(text string) (g ledger.Gap, ok bool) {
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
	return ledger.Gap{Topic: topic, Partition: int32(id), From: first, To: end}, true
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
