package job

import "time"

// PartitionFacts are the broker's facts about one partition at one moment. Offsets are -1 if they could not be read;
// Err then has the cause.
type PartitionFacts struct {
	Partition
	LeaderEpoch int32
	Start       int64 // log start offset
	LastStable  int64 // last stable offset: read_committed readers get no further
	End         int64 // high watermark
	Err         error
}

// TopicFacts are the broker's facts about a topic.
type TopicFacts struct {
	Name            string
	ID              TopicID
	Partitions      []PartitionFacts
	Compacted       bool
	RetentionMS     int64 // -1: kept without limit
	RetentionBytes  int64 // -1: no limit
	MaxMessageBytes int64
	// DeleteRetentionMS is how long a compacted topic keeps tombstones; -1: unknown.
	DeleteRetentionMS int64
}

// PartitionRange is a range of offsets of one partition.
type PartitionRange struct {
	Partition
	Range
}

// Frozen is one partition's part of a replay: the range to read as segments.
type Frozen struct {
	Partition
	Range
	LeaderEpoch int32
	// SplitAt is the most offsets a segment of this partition may hold; 0 = the default.
	SplitAt int64
}

// Fault is why a partition of a version cannot continue. An empty Kind means no fault.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Detail string    `json:"detail"`
	From   int64     `json:"from"` // the missing range of a gap
	To     int64     `json:"to"`
}

// FaultKind is the kind of a Fault.
type FaultKind string

// The kinds of fault.
const (
	FaultNone      FaultKind = ""
	FaultGap       FaultKind = "gap"       // the log no longer holds offsets that are needed
	FaultRecreated FaultKind = "recreated" // the topic was deleted and recreated
	FaultMissing   FaultKind = "missing"   // the topic does not exist
	FaultQuery     FaultKind = "query"     // PARTIAL or the merge raised an error
	FaultRecord    FaultKind = "record"    // on_error: fail met a record that cannot be processed
	FaultTooLarge  FaultKind = "too_large" // a record over the client's limits
	FaultArchive   FaultKind = "archive"   // a file of the archive is damaged or missing
	FaultProgram   FaultKind = "program"   // the program of the job ends again and again
	FaultTable     FaultKind = "table"     // the version's table is not as it was created
	FaultEpochs    FaultKind = "epochs"    // positions of a version of mode lambda have several epochs
)

// Positions are the partitions of a version with a digest that detects changes.
type Positions struct {
	All    []Position
	Digest int64
	Known  bool // false: they were not read yet
}

// Position is one partition of one version, as speedlayer keeps it.
type Position struct {
	Partition
	Next        int64 // next offset to read; in a replay the end of the contiguous done segments
	Remaining   int64 // offsets below FrozenEnd that no done segment covers
	CoversFrom  int64 // first offset whose effect is in the table
	FrozenEnd   int64
	LeaderEpoch int32
	RecordTime  *time.Time // timestamp of the newest record processed
	Records     int64
	DeadLetters int64
	Owner       string
	Fault       Fault
}

// Owned is a position of a version as whoever has taken it over finds it.
type Owned struct {
	Partition
	Next      int64
	FrozenEnd int64
	Fault     FaultKind
}
