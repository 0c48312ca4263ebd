package speedlayer

import (
	"context"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafka"
)

// reader reads the version's topics from the log and the archive.
func (r *run) reader(f *kafka.Fetcher, p archive.Policy) *archive.Reader {
	return archive.NewReader(f, r.Shelf, p, r.Now)
}

// archived reports whether the version reads the archive: a deploy may give the job one, or take it away, in place.
func (r *run) archived() bool { return r.spec.Replay.Source.ReadsArchive(r.kept.Load()) }

// replayPolicy is where segments are read.
func (r *run) replayPolicy() archive.Policy {
	return archive.ReplayPolicy(r.spec.Replay.Source, r.kept.Load())
}

// livePolicy is where a live version is read: it goes on in the log behind a replay, whatever that was read from.
func (r *run) livePolicy() archive.Policy {
	if r.archived() {
		return archive.LogFirst
	}
	return archive.LogOnly
}

// archivedTo is the end of what the archive holds of a segment, without a hole from its start on.
func (w *worker) archivedTo(ctx context.Context, g segment) (int64, error) {
	if !w.archived() {
		return g.FromOffset, nil
	}
	return archive.Store{}.Whole(ctx, w.Pool, g.partition, g.FromOffset)
}
