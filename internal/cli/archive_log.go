package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// shelfBytes is how many bytes of the archive's files are in the temporary folder at once, of those that queries may
// spill there; 0: they may spill without a bound.
func shelfBytes(spill int64) int64 {
	if spill > 0 {
		return min(spill/4, archive.DefaultShelf)
	}
	return archive.DefaultShelf
}

// archiveLog gives the topics of a job as it reads them, with their archive. estimates is that of archive.NewLog.
func archiveLog(admin *kafka.Admin, shelf *archive.Shelf, estimates bool) func(*job.Spec) plan.History {
	return func(s *job.Spec) plan.History {
		return archive.NewLog(admin, shelf, archive.ReplayPolicy(s.Replay.Source, s.Archive != nil), estimates)
	}
}

// history is archiveLog of one job, where files may be out of this machine's sight.
func (c *client) history(admin *kafka.Admin, s *job.Spec) plan.History {
	return archiveLog(admin, c.shelf(), true)(s)
}

// shelf holds files of the archive for a command.
func (c *client) shelf() *archive.Shelf {
	return archive.NewShelf(c.pool, c.locations, c.settings.Agent.Temp, archive.DefaultShelf)
}

// withArchive makes a sample's reader read what the log lacks from the archive, where the job does.
func (c *client) withArchive(r *sample.Reader, s *job.Spec) {
	if !s.ReadsArchive() {
		return
	}
	r.Through(func(f *kafka.Fetcher) sample.Fetcher {
		return archive.NewReader(f, c.shelf(), archive.LogFirst, c.now)
	})
}

// inLog is the part of ranges that the logs hold.
func (c *client) inLog(ctx context.Context, s *job.Spec, ranges []job.Frozen) ([]job.Frozen, error) {
	admin, _, err := c.admin(ctx)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	facts, err := admin.Offsets(ctx, s.Source.Topics)
	if err != nil {
		return nil, err
	}
	starts := map[job.Partition]int64{}
	for _, f := range facts {
		starts[f.Partition] = f.Start
	}
	var out []job.Frozen
	for _, r := range ranges {
		if r.From = max(r.From, starts[r.Partition]); r.From < r.To {
			out = append(out, r)
		}
	}
	return out, nil
}
