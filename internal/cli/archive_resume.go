package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type archiveResumeOptions struct {
	archiveOptions
	gaps []ledger.Gap
}

func newArchiveResume(a *app, run func(context.Context, archiveResumeOptions) error) *cobra.Command {
	o := archiveResumeOptions{archiveOptions: archiveOptions{app: a}}
	var accept []string
	cmd := &cobra.Command{
		Use:   "resume [TOPIC]",
		Short: "Let an archive that a fault has stopped go on",
		Long: `Let the partitions that a fault has stopped try again. With --accept-gap TOPIC/PARTITION:FROM-TO, as archive status prints the
fault, a partition goes on behind offsets that are lost to the archive: the manifest then has a range without a file. Where the log was
cut off below the end of the archive, the archive keeps what it has and goes on once the log has come to that end again.`,
		Example: "  kappactl archive resume orders\n  kappactl archive resume --accept-gap orders/0:1200-1900",
		Args:    between(nil, []string{"TOPIC"}),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range accept {
				g, ok := parseGap(text)
				if !ok {
					return usage(cmd, "%q is not TOPIC/PARTITION:FROM-TO", text)
				}
				o.gaps = append(o.gaps, g)
			}
			if len(args) > 0 && len(o.gaps) > 0 {
				return usage(cmd, "give TOPIC or --accept-gap, which names its topic")
			}
			if len(args) > 0 {
				o.topic = args[0]
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringArrayVar(&accept, "accept-gap", nil,
		"go on without these offsets, `TOPIC/PARTITION:FROM-TO`, TO not included; can be repeated")
	return cmd
}

// archiveResumed is the output of archive resume.
type archiveResumed struct {
	Partitions int          `json:"partitions"` // that go on
	Gaps       []ledger.Gap `json:"gaps"`       // that were accepted
}

func runArchiveResume(ctx context.Context, o archiveResumeOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := archiveResumed{Gaps: []ledger.Gap{}}
	err = c.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if len(o.gaps) > 0 {
			return o.accept(ctx, tx, &r)
		}
		return o.retry(ctx, tx, &r)
	})
	if err != nil {
		return err
	}
	return o.result(r, func(w io.Writer) error {
		text := render.Plural(int64(r.Partitions), "partition") + " of the archive resumed"
		if r.Partitions == 0 {
			text = "no partition of the archive has a fault: nothing to do"
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

// retry lets the partitions that a fault has stopped try again.
func (o archiveResumeOptions) retry(ctx context.Context, tx *pg.Tx, r *archiveResumed) error {
	resumed, err := archive.Store{}.Resume(ctx, tx, o.topic)
	if err != nil {
		return err
	}
	for _, s := range resumed {
		r.Partitions += len(s.Partitions)
		if err := o.noteArchive(ctx, tx, s.Jobs, ledger.EventArchiveResumed,
			reason.ArchiveResumed(s.Topic, len(s.Partitions)), s); err != nil {
			return err
		}
	}
	return nil
}

// accept accepts all gaps or none.
func (o archiveResumeOptions) accept(ctx context.Context, tx *pg.Tx, r *archiveResumed) error {
	for _, g := range o.gaps {
		jobs, ok, err := archive.Store{}.AcceptGap(ctx, tx, g.Topic, g.Partition, job.Range{From: g.From, To: g.To})
		if err != nil {
			return err
		}
		if !ok {
			return &job.Refusal{
				Code: job.ExitUsage, Cause: fmt.Sprintf("the archive of %s/%d has no fault of the offsets %d-%d", g.Topic,
					g.Partition, g.From, g.To),
				Next: "kappactl archive status " + g.Topic,
			}
		}
		if err := o.noteArchive(ctx, tx, jobs, ledger.EventArchiveGapAccepted, reason.ArchiveGapAccepted(g.String()),
			g); err != nil {
			return err
		}
		r.Partitions++
		r.Gaps = append(r.Gaps, g)
	}
	return nil
}
