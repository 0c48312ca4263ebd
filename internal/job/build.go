package job

// Build is a generation of the batch layer of a version that is being computed.
type Build struct {
	Version
	Generation int
	Base       *int     // the generation whose states it goes on from; nil: it is computed from scratch
	Ranges     []Frozen // the offsets to read
	Workers    int      // replay.workers; 0: as many as agents have
	Unread     []Frozen // parts of them, sorted, that neither archive nor log holds: they are passed over
}

// BuildProgress is how far the segments of a generation are read.
type BuildProgress struct {
	Segments  int
	Done      int
	Offsets   int64 // of all segments
	Remaining int64 // of those that are not read
	Records   int64
	Bytes     int64
	Timings   map[string]float64 // seconds by step, over all workers

	// Of the first segment that cannot be read; Fault is empty when there is none.
	Fault       FaultKind
	FaultDetail string
	Topic       string
	Partition   int32
	FaultFrom   int64
	FaultTo     int64
}
