package estimate

import (
	"runtime"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// Replay holds the ranges to replay and their cost. nil means unknown.
type Replay struct {
	Start      string      `json:"start"`
	Partitions []Partition `json:"partitions"`
	Topics     []Topic     `json:"topics"`
	Offsets    int64       `json:"offsets"`
	Archived   int64       `json:"archived_offsets"` // of them, those that are read from the archive
	Segments   int         `json:"segments"`
	Workers    int         `json:"workers"`
	Sampled    int64       `json:"sampled"` // records that were measured
	Records    *int64      `json:"records"`
	Bytes      *int64      `json:"bytes"` // of keys and values
	Rows       *int64      `json:"rows"`  // of the version's table
	// DeadLetters are records that cannot be processed, and DeadLetterFirst is why the first that was measured cannot.
	DeadLetters     *int64 `json:"dead_letters"`
	DeadLetterFirst string `json:"dead_letter_first,omitempty"`
	// DiskBytes is the version's table with its index; StagingBytes comes on top until the replay has ended.
	DiskBytes    *int64 `json:"disk_bytes"`
	StagingBytes *int64 `json:"staging_bytes"`
	WALBytes     *int64 `json:"wal_bytes"`
	// DiskFree is the free space of PostgreSQL's disk, in bytes; null when it cannot be seen from here, and DiskUnknown
	// says why.
	DiskFree    *int64 `json:"disk_free_bytes"`
	DiskUnknown string `json:"disk_unknown,omitempty"`
	// RecordsPerSecond is that of one worker, and ETAFrom where it comes from: "earlier replay" or "sample".
	RecordsPerSecond *float64 `json:"records_per_second"`
	ETASeconds       *float64 `json:"eta_seconds"`
	ETAFrom          string   `json:"eta_from"`
	StableForSeconds float64  `json:"stable_for_seconds"` // from when it has caught up until it is ready
}

// Partition is the range of one partition that is replayed.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}

// Topic holds the records that a topic keeps, and its retention.
type Topic struct {
	Topic          string `json:"topic"`
	RetentionMS    int64  `json:"retention_ms"`    // -1: kept without a limit
	RetentionBytes int64  `json:"retention_bytes"` // -1: no limit
	Compacted      bool   `json:"compacted"`
	// DeletesFrom is when retention may begin to delete what is replayed, at the earliest; null when it does not, or
	// that is not known.
	DeletesFrom *time.Time `json:"deletes_from"`
}

// New returns what a plan replays, before anything is measured.
func New(spec *job.Spec, p plan.Deploy) Replay {
	r := Replay{
		Start: spec.Replay.Start, StableForSeconds: spec.Ready.StableFor.Seconds(), Partitions: []Partition{},
		Topics: []Topic{}, Offsets: p.Offsets(), Archived: p.Archived(), Segments: p.Segments(),
	}
	if r.Segments > 0 {
		r.Workers = workers(spec, r.Segments)
	}
	for _, f := range p.Frozen {
		r.Partitions = append(r.Partitions, Partition{f.Topic, f.ID, f.From, f.To})
	}
	for _, t := range p.Topics {
		r.Topics = append(r.Topics, Topic{
			Topic: t.Name, RetentionMS: t.RetentionMS, RetentionBytes: t.RetentionBytes, Compacted: t.Compacted,
			DeletesFrom: p.DeletesFrom(t.Name),
		})
	}
	return r
}

// workers returns how many segments are replayed at once, as far as this machine can tell.
func workers(spec *job.Spec, segments int) int {
	n := spec.Replay.Workers
	if n == 0 {
		n = runtime.NumCPU()
	}
	return max(1, min(n, segments))
}
