package speedlayer

import (
	"context"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/typed"
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

// raw is a source of decoded records that has none.
func raw(context.Context, kafka.Cursor) (chunk, bool, error) { return chunk{}, false, nil }

const cannotUseTyped = "typed columns cannot be used: their records are read from the archive file"

// openTyped makes the reader of typed columns.
func (w *worker) openTyped() (err error) {
	w.typed, err = typed.NewReader(w.Pool, w.Shelf, w.spec.Source, w.decoder, w.fetcher.Rest,
		func(err error) { w.quiet.warn(cannotUseTyped, err) })
	return err
}

// decoded answers a cursor of the segment from typed columns. They are not asked where single records are looked for,
// nor when the replay does not read the archive.
func (s *stream) decoded(ctx context.Context, at kafka.Cursor) (chunk, bool, error) {
	if policy := s.replayPolicy(); len(s.skip) > 0 || policy != archive.ArchiveFirst && policy != archive.ArchiveOnly {
		return chunk{}, false, nil
	}
	c, ok, err := s.typed.Next(ctx, at, s.segment.ToOffset)
	if err != nil || !ok {
		return chunk{}, false, err
	}
	out := chunk{records: c.Rejected, next: c.Next, epoch: c.LeaderEpoch, bytes: int(c.Bytes), typed: &c}
	for _, rec := range c.Rejected {
		out.bytes += len(rec.Key) + len(rec.Value)
	}
	return out, true, nil
}

// archivedTo is the end of what the archive holds of a segment, without a hole from its start on.
func (w *worker) archivedTo(ctx context.Context, g segment) (int64, error) {
	if !w.archived() {
		return g.FromOffset, nil
	}
	return archive.Store{}.Whole(ctx, w.Pool, g.partition, g.FromOffset)
}
