package cli

import (
	"context"
	"errors"
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
	// planPlaces is at how many places of all partitions a larger topic is sampled, and planLeast and planMost of each: the more, the
	// less do records of one time stand for the others, and the more fetches it takes.
	planPlaces = 256
	planLeast  = 4
	planMost   = 64
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
	// DeadLetters are records that cannot be processed, and DeadLetterFirst is why the first that was measured cannot.
	DeadLetters     *int64 `json:"dead_letters"`
	DeadLetterFirst string `json:"dead_letter_first,omitempty"`
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
	StableForSeconds float64  `json:"stable_for_seconds"` // from when it has caught up until it is ready
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
	// DeletesFrom is when retention may begin to delete what is replayed, at the earliest; null when it does not, or that is not known.
	DeletesFrom *time.Time `json:"deletes_from"`
}

func newPlanReplay(c *compiled, p reprocess.Plan) planReplay {
	r := planReplay{Start: c.spec.Replay.Start, StableForSeconds: c.spec.Ready.StableFor.Seconds(), Partitions: []planPartition{}, Topics: []planTopic{}, Offsets: p.Offsets(), Segments: p.Segments()}
	if r.Segments > 0 {
		r.Workers = workers(c.spec, r.Segments)
	}
	for _, f := range p.Frozen {
		r.Partitions = append(r.Partitions, planPartition{f.Topic, f.ID, f.From, f.To})
	}
	for _, t := range p.Topics {
		r.Topics = append(r.Topics, planTopic{
			Topic: t.Name, RetentionMS: t.RetentionMS, RetentionBytes: t.RetentionBytes, Compacted: t.Compacted, DeletesFrom: p.DeletesFrom(t.Name),
		})
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
	err = s.measure(ctx, cl, c, &r.Replay)
	var serve *law.ServeError
	if errors.As(err, &serve) {
		r.refused(deployOptions{app: o.app, file: o.file}, &job.Refusal{Code: job.ExitUsage, Cause: serve.Error(), Next: "correct it in FILE"})
		return nil
	}
	if err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, r.Replay.tooManyLetters(c.spec)...)
	room, err := o.room(ctx, cl, &r.Replay)
	if err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, room...)
	if r.Replay.DiskFree != nil {
		r.refused(deployOptions{app: o.app, file: o.file}, deployRoom().refusal(r.Replay, *r.Replay.DiskFree))
	}
	r.Warnings = append(r.Warnings, r.Replay.overtaken(p, o.sys.Now())...)
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
	places := min(planMost, max(planLeast, planPlaces/max(1, len(p.Frozen))))
	n := int(budget) / (places * max(1, len(p.Frozen)))
	pieces, err = reader.Spread(ctx, p.Frozen, places, max(1, n))
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

// fill extends what was measured to all records. Keys grow with the records as Times says.
func (r *planReplay) fill(spec *job.Spec, p reprocess.Plan, total amount, m law.Measured, whole bool) {
	r.Sampled = int64(total.sampled)
	r.Records, r.Bytes = rounded(total.records), rounded(total.bytes)
	scale := 1.0
	if total.sampled > 0 {
		scale = math.Max(1, total.records/total.sampled)
	}
	r.DeadLetters, r.DeadLetterFirst = rounded(float64(m.Rejected)*scale), m.Reject
	rows := m.Times(scale)
	staged := float64(m.StagedRows)
	if !whole {
		// Each segment has its own rows: those of its share of all records.
		segments := float64(max(1, r.Segments))
		staged = math.Min(total.records, math.Max(rows, segments*m.Times(scale/segments)))
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

// tooManyLetters warns of dead letters that end the replay or keep the version from being promoted.
func (r planReplay) tooManyLetters(spec *job.Spec) []string {
	switch {
	case r.Records == nil || r.DeadLetters == nil || *r.DeadLetters == 0:
		return nil
	case spec.Source.OnError.Fail:
		return []string{fmt.Sprintf("about %s cannot be processed, and on_error: fail stops at the first: %s", render.Plural(*r.DeadLetters, "record"), r.DeadLetterFirst)}
	case float64(*r.DeadLetters) > spec.Source.OnError.Max*float64(*r.Records):
		return []string{fmt.Sprintf("about %s of %s cannot be processed, more than on_error allows (%.3g%%): %s; correct the file, or raise source.on_error.dead_letter.max",
			render.Plural(*r.DeadLetters, "record"), render.Count(*r.Records), 100*spec.Source.OnError.Max, r.DeadLetterFirst)}
	}
	return nil
}

func rounded(v float64) *int64 {
	n := int64(math.Round(v))
	return &n
}
