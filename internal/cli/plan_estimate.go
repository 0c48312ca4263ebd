package cli

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/law"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess"
)

const (
	// planSample is how many records a plan measures at most; a topic of no more is measured whole.
	planSample = 200_000
	// planPlaces is at how many places of each partition a larger topic is sampled.
	planPlaces = 16
	// planBytes bounds the memory of a sample.
	planBytes = 128 << 20
	// planProbe is how many records tell how large records are.
	planProbe = 400
)

// planReplay is what is replayed and what that costs. null means unknown.
type planReplay struct {
	Start      string          `json:"start"`
	Partitions []planPartition `json:"partitions"`
	Topics     []planTopic     `json:"topics"`
	Offsets    int64           `json:"offsets"`
	Segments   int             `json:"segments"`
	Workers    int             `json:"workers"`
	Sampled    int64           `json:"sampled"` // records that were measured
	Records    *int64          `json:"records"`
	Bytes      *int64          `json:"bytes"` // of keys and values
	Rows       *int64          `json:"rows"`  // of the version's table
	// DiskBytes is the version's table with its index; StagingBytes comes on top until the replay has ended.
	DiskBytes    *int64 `json:"disk_bytes"`
	StagingBytes *int64 `json:"staging_bytes"`
	WALBytes     *int64 `json:"wal_bytes"`
	// DiskFree is what PostgreSQL's disk has left; null when it cannot be seen from here, and DiskUnknown says why.
	DiskFree    *int64 `json:"disk_free_bytes"`
	DiskUnknown string `json:"disk_unknown,omitempty"`
	// RecordsPerSecond is that of one worker, and ETAFrom where it comes from: "earlier replay" or "sample".
	RecordsPerSecond *float64 `json:"records_per_second"`
	ETASeconds       *float64 `json:"eta_seconds"`
	ETAFrom          string   `json:"eta_from"`
}

type planPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}

type planTopic struct {
	Topic          string `json:"topic"`
	RetentionMS    int64  `json:"retention_ms"`    // -1: kept for ever
	RetentionBytes int64  `json:"retention_bytes"` // -1: no limit
	Compacted      bool   `json:"compacted"`
}

func newPlanReplay(c *compiled, p reprocess.Plan) planReplay {
	r := planReplay{Start: c.spec.Replay.Start, Partitions: []planPartition{}, Topics: []planTopic{}, Offsets: p.Offsets(), Segments: p.Segments()}
	if r.Segments > 0 {
		r.Workers = workers(c.spec, r.Segments)
	}
	for _, f := range p.Frozen {
		r.Partitions = append(r.Partitions, planPartition{f.Topic, f.ID, f.From, f.To})
	}
	for _, t := range p.Topics {
		r.Topics = append(r.Topics, planTopic{t.Name, t.RetentionMS, t.RetentionBytes, t.Compacted})
	}
	return r
}

// estimate measures a sample and says what all of it will cost.
func (o planOptions) estimate(ctx context.Context, cl *client, c *compiled, p reprocess.Plan, brokers kafka.Config, r *planResult) error {
	s, err := newSampling(ctx, o.app, p, brokers)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.measure(ctx, cl, c, &r.Replay); err != nil {
		return err
	}
	room, err := o.room(ctx, cl, &r.Replay)
	if err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, room...)
	if r.Replay.DiskFree != nil {
		r.refused(deployOptions{app: o.app, file: o.file}, deployRoom().refusal(r.Replay, *r.Replay.DiskFree))
	}
	r.Warnings = append(r.Warnings, retentionWarnings(p, s.oldest, r.Replay, o.sys.Now())...)
	return nil
}

// sampling reads samples of what is replayed. Close it.
type sampling struct {
	*sample.Reader
	app    *app
	plan   reprocess.Plan
	oldest []sample.Piece // planProbe records
}

func newSampling(ctx context.Context, a *app, p reprocess.Plan, brokers kafka.Config) (*sampling, error) {
	reader, err := sample.NewReader(brokers, a.sys.Now)
	if err != nil {
		return nil, err
	}
	s := &sampling{Reader: reader, app: a, plan: p}
	if s.oldest, err = reader.Oldest(ctx, p.Frozen, planProbe); err != nil {
		reader.Close()
		return nil, err
	}
	return s, nil
}

// measure tries a sample out and fills r.
func (s *sampling) measure(ctx context.Context, cl *client, c *compiled, r *planReplay) error {
	pieces, whole, err := planPieces(ctx, s.Reader, s.plan, s.oldest)
	if err != nil {
		return err
	}
	total := extend(s.plan.Frozen, pieces)
	m, err := law.Measure(ctx, merging(cl.pool), c.spec, c.query, parts(pieces), s.app.sys.Now)
	if err != nil {
		return fmt.Errorf("measure a sample of %s: %w", c.spec.Job, err)
	}
	r.fill(c.spec, s.plan, total, m, whole)
	return nil
}

// planPieces reads everything when that is little, else pieces spread over the ranges.
func planPieces(ctx context.Context, reader *sample.Reader, p reprocess.Plan, probe []sample.Piece) (pieces []sample.Piece, whole bool, err error) {
	t := extend(p.Frozen, probe)
	budget := int64(planSample)
	if t.records > 0 && t.bytes > 0 {
		budget = min(budget, max(1, int64(planBytes/(t.bytes/t.records))))
	}
	if p.Offsets() <= budget {
		pieces, err = reader.Spread(ctx, p.Frozen, 1, int(p.Offsets()))
		return pieces, true, err
	}
	n := int(budget) / (planPlaces * max(1, len(p.Frozen)))
	pieces, err = reader.Spread(ctx, p.Frozen, planPlaces, max(1, n))
	return pieces, false, err
}

// amount is records and bytes of all ranges, and of the records that were read.
type amount struct{ records, bytes, sampled float64 }

// extend takes what pieces hold for their whole ranges, partition by partition.
func extend(ranges []job.Frozen, pieces []sample.Piece) amount {
	type seen struct{ offsets, records, bytes float64 }
	by := map[job.Partition]seen{}
	var out amount
	for _, p := range pieces {
		s := by[p.Partition]
		by[p.Partition] = seen{s.offsets + float64(p.Len()), s.records + float64(len(p.Records)), s.bytes + float64(p.Bytes)}
		out.sampled += float64(len(p.Records))
	}
	for _, f := range ranges {
		if s := by[f.Partition]; s.offsets > 0 {
			out.records += s.records * float64(f.Len()) / s.offsets
			out.bytes += s.bytes * float64(f.Len()) / s.offsets
		}
	}
	return out
}

func parts(pieces []sample.Piece) [][]*kgo.Record {
	out := make([][]*kgo.Record, len(pieces))
	for i, p := range pieces {
		out[i] = p.Records
	}
	return out
}

// fill extends what was measured to all records. Keys grow with the records as Growth says.
func (r *planReplay) fill(spec *job.Spec, p reprocess.Plan, total amount, m law.Measured, whole bool) {
	r.Sampled = int64(total.sampled)
	r.Records, r.Bytes = rounded(total.records), rounded(total.bytes)
	scale := 1.0
	if total.sampled > 0 {
		scale = math.Max(1, total.records/total.sampled)
	}
	growth := m.Growth()
	rows := float64(m.Rows) * math.Pow(scale, growth)
	staged := float64(m.StagedRows)
	if !whole {
		// Each segment has its own rows: those of its share of all records.
		staged = math.Min(total.records, math.Max(rows, rows*math.Pow(float64(max(1, r.Segments)), 1-growth)))
	}
	each := func(bytes, n int64) float64 { return float64(bytes) / math.Max(1, float64(n)) }
	disk, staging := rows*each(m.TableBytes, m.Rows), staged*each(m.StagedBytes, m.StagedRows)
	r.Rows, r.DiskBytes, r.StagingBytes, r.WALBytes = rounded(rows), rounded(disk), rounded(staging), rounded(disk+staging)
	seconds := m.Query.Seconds()
	switch {
	case p.Rate != nil:
		r.RecordsPerSecond, r.ETAFrom = p.Rate, "earlier replay"
	case seconds > 0 && m.Records > 0:
		rate := float64(m.Records) / seconds
		r.RecordsPerSecond, r.ETAFrom = &rate, "sample"
	default:
		return
	}
	eta := total.records/(*r.RecordsPerSecond*float64(max(1, r.Workers))) + m.Build.Seconds()*staged/math.Max(1, float64(m.StagedRows))
	if spec.Replay.MaxRate > 0 {
		eta = math.Max(eta, total.bytes/float64(spec.Replay.MaxRate))
	}
	r.ETASeconds = &eta
}

func rounded(v float64) *int64 {
	n := int64(math.Round(v))
	return &n
}

// retentionWarnings say which topics may lose records before they are replayed.
func retentionWarnings(p reprocess.Plan, oldest []sample.Piece, r planReplay, now time.Time) []string {
	var out []string
	for _, t := range p.Topics {
		if t.RetentionMS < 0 || r.ETASeconds == nil {
			continue
		}
		left := time.Duration(math.MaxInt64)
		for _, piece := range oldest {
			if piece.Topic == t.Name && len(piece.Records) > 0 {
				left = min(left, piece.Records[0].Timestamp.Add(msDuration(t.RetentionMS)).Sub(now))
			}
		}
		if eta := time.Duration(*r.ETASeconds * float64(time.Second)); left < 2*eta {
			out = append(out, fmt.Sprintf("topic %s keeps records for %s: its oldest may be deleted in %s, and the replay takes about %s",
				t.Name, render.Duration(msDuration(t.RetentionMS)), render.Duration(max(0, left)), render.Duration(eta)))
		}
	}
	return out
}

// msDuration is a time of Kafka's settings, which may be longer than durations are.
func msDuration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
