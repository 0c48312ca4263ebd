package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Cluster is what brokers say about topics; implemented by *kafka.Admin.
type Cluster interface {
	Topics(ctx context.Context, names []string) ([]job.TopicFacts, error)
	Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error)
	OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error)
	Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error)
	Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error)
}

// Log is a cluster whose logs begin where their archive does: archive and log together are whole from there on. With
// ArchiveOnly the brokers are not asked, and a log is what the archive holds.
type Log struct {
	cluster Cluster
	shelf   *Shelf
	policy  Policy
	// estimates says that a file that cannot be read here may be judged by what the manifest knows of it: for plans on
	// machines that do not see the folder.
	estimates bool
}

// NewLog makes a Log of a cluster and the archive that the shelf copies from. With estimates, times are told as exactly
// as the manifest knows them where a file cannot be read.
func NewLog(c Cluster, shelf *Shelf, p Policy, estimates bool) *Log {
	return &Log{cluster: c, shelf: shelf, policy: p, estimates: estimates}
}

// Topics is that of the cluster, with the starts of logs in the archive.
func (l *Log) Topics(ctx context.Context, names []string) ([]job.TopicFacts, error) {
	if l.policy == ArchiveOnly {
		return Store{}.Topics(ctx, l.shelf.db, names)
	}
	topics, err := l.cluster.Topics(ctx, names)
	if err != nil || l.policy == LogOnly {
		return topics, err
	}
	for i := range topics {
		if err := l.begin(ctx, topics[i].Partitions); err != nil {
			return nil, err
		}
	}
	return topics, nil
}

// Offsets is that of the cluster, with the starts of logs in the archive.
func (l *Log) Offsets(ctx context.Context, names []string) ([]job.PartitionFacts, error) {
	if l.policy == ArchiveOnly {
		return l.offsets(ctx, names)
	}
	facts, err := l.cluster.Offsets(ctx, names)
	if err != nil || l.policy == LogOnly {
		return facts, err
	}
	return facts, l.begin(ctx, facts)
}

// offsets are those of the archive alone.
func (l *Log) offsets(ctx context.Context, names []string) (out []job.PartitionFacts, err error) {
	topics, err := Store{}.Topics(ctx, l.shelf.db, names)
	for _, t := range topics {
		out = append(out, t.Partitions...)
	}
	return out, err
}

// begin moves the starts of logs back to where the archive begins that reaches them.
func (l *Log) begin(ctx context.Context, facts []job.PartitionFacts) error {
	kept, err := Store{}.Spans(ctx, l.shelf.db, facts)
	for i := range facts {
		if r, ok := kept[facts[i].Partition]; ok {
			facts[i].Start = min(facts[i].Start, r.From)
		}
	}
	return err
}

// Archived is what is read from the archive, by partition: without a gap, and, unless it is read alone, up to the log
// or into it.
func (l *Log) Archived(ctx context.Context, names []string) (map[job.Partition]job.Range, error) {
	if l.policy == LogOnly {
		return nil, nil //nolint:nilnil // nothing is
	}
	ask := l.cluster.Offsets
	if l.policy == ArchiveOnly {
		ask = l.offsets
	}
	facts, err := ask(ctx, names)
	if err != nil {
		return nil, err
	}
	return Store{}.Spans(ctx, l.shelf.db, facts)
}

// OffsetsAt is Offsets with Start being the first offset whose timestamp is at or after at, or the end where there is
// none.
func (l *Log) OffsetsAt(ctx context.Context, names []string, at time.Time) ([]job.PartitionFacts, error) {
	if l.policy == LogOnly {
		return l.cluster.OffsetsAt(ctx, names, at)
	}
	ask := func(ctx context.Context, names []string) ([]job.PartitionFacts, error) {
		return l.cluster.OffsetsAt(ctx, names, at)
	}
	if l.policy == ArchiveOnly {
		ask = l.offsets
	}
	facts, err := ask(ctx, names)
	if err != nil {
		return nil, err
	}
	kept, err := l.Archived(ctx, names)
	if err != nil {
		return nil, err
	}
	for i := range facts {
		f := &facts[i]
		r, ok := kept[f.Partition]
		if l.policy == ArchiveOnly {
			f.Start = f.End
		}
		if !ok || f.Err != nil {
			continue
		}
		first, found, err := l.firstSince(ctx, f.Partition, r.From, max(at.UnixMilli(), 0))
		if err != nil {
			return nil, fmt.Errorf("offset of %s at %s in the archive: %w", f.Partition, at.UTC().Format(time.RFC3339), err)
		}
		if found {
			f.Start = min(f.Start, first)
		}
	}
	return facts, nil
}

// firstSince is the first offset from one on whose timestamp is at or after a time in milliseconds.
func (l *Log) firstSince(ctx context.Context, p job.Partition, from, ms int64) (offset int64, found bool, err error) {
	row, found, err := Store{}.FileSince(ctx, l.shelf.db, p, from, ms)
	if err != nil || !found {
		return 0, false, err
	}
	r, err := l.firstIn(ctx, row, from, func(r *kgo.Record) bool { return r.Timestamp.UnixMilli() >= ms })
	switch {
	case err != nil && l.estimates:
		return max(row.From, from), true, nil
	case err != nil || r == nil:
		return 0, false, err
	}
	return r.Offset, true, nil
}

// Sizes is that of the cluster, with the bytes of the archive's files that lie before the logs.
func (l *Log) Sizes(ctx context.Context, names []string) (map[job.Partition]int64, error) {
	if l.policy == LogOnly {
		return l.cluster.Sizes(ctx, names)
	}
	out, ask := map[job.Partition]int64{}, l.cluster.Offsets
	if l.policy == ArchiveOnly {
		ask = l.offsets
	} else {
		sizes, err := l.cluster.Sizes(ctx, names)
		if err != nil || sizes == nil {
			return nil, err
		}
		out = sizes
	}
	facts, err := ask(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		before := f.Start
		if l.policy == ArchiveOnly {
			before = f.End
		}
		bytes, err := Store{}.Size(ctx, l.shelf.db, f.Partition, before)
		if err != nil {
			return nil, err
		}
		out[f.Partition] += bytes
	}
	return out, nil
}

// Times are the timestamps of the first record at or behind each offset, as far as they are known.
func (l *Log) Times(ctx context.Context, at map[job.Partition]int64) (map[job.Partition]time.Time, error) {
	out, rest := map[job.Partition]time.Time{}, map[job.Partition]int64{}
	for p, offset := range at {
		found := false
		if l.policy != LogOnly {
			var t time.Time
			var err error
			if t, found, err = l.timeOf(ctx, p, offset); err != nil {
				return nil, err
			}
			if found {
				out[p] = t
			}
		}
		if !found {
			rest[p] = offset
		}
	}
	if l.policy == ArchiveOnly || len(rest) == 0 {
		return out, nil
	}
	more, err := l.cluster.Times(ctx, rest)
	for p, t := range more {
		out[p] = t
	}
	return out, err
}

// timeOf is the timestamp of the first record at or behind an offset, in the file that holds the offset.
func (l *Log) timeOf(ctx context.Context, p job.Partition, offset int64) (_ time.Time, found bool, err error) {
	row, ok, err := Store{}.Locate(ctx, l.shelf.db, p.TopicID, p.ID, offset)
	if err != nil || !ok || row.MinTimestamp == nil {
		return time.Time{}, false, err
	}
	r, err := l.firstIn(ctx, row, offset, func(*kgo.Record) bool { return true })
	switch {
	case err != nil && l.estimates:
		return time.UnixMilli(*row.MinTimestamp), true, nil
	case err != nil || r == nil || r.Timestamp.UnixMilli() < 0:
		return time.Time{}, false, err
	}
	return r.Timestamp, true, nil
}

// firstIn is the first record of a file from an offset on that fits; nil when none does.
func (l *Log) firstIn(ctx context.Context, row FileRow, from int64, fits func(*kgo.Record) bool) (*kgo.Record, error) {
	o, err := l.shelf.openFile(ctx, row)
	if err != nil {
		return nil, err
	}
	defer o.close(l.shelf)
	return o.first(from, fits)
}

// Spans is what the archive holds of partitions without a gap, up to the start of their logs or further: only the
// partitions of which it reaches that far.
func (Store) Spans(ctx context.Context, db pg.DB, facts []job.PartitionFacts) (map[job.Partition]job.Range, error) {
	var ids []string
	var partitions []int32
	var starts []int64
	for _, f := range facts {
		if f.Err != nil {
			continue
		}
		ids, partitions, starts = append(ids, f.TopicID.String()), append(partitions, f.ID), append(starts, f.Start)
	}
	found, err := spans(ctx, db, ids, partitions, starts)
	if err != nil {
		return nil, fmt.Errorf("read what the archive holds: %w", err)
	}
	out := map[job.Partition]job.Range{}
	for _, f := range facts {
		if r, ok := found[spanKey{f.TopicID, f.ID}]; ok && f.Err == nil {
			out[f.Partition] = r
		}
	}
	return out, nil
}
