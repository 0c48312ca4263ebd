// Package faultpoint names the places where the kill tests end or freeze the process.
//
// A step that must survive a crash calls Hit with its name. In an ordinary build Hit does nothing. Built with the tag
// faultpoints it reads KAPPACTL_FAULT once: "name:n" ends the process with SIGKILL the n-th time it passes the point,
// "name:n:stop" freezes it with SIGSTOP, so that it can be continued after its leases ran out. Several faults are
// separated by commas.
package faultpoint

// Variable is the environment variable that selects where to end or freeze.
const Variable = "KAPPACTL_FAULT"

// Clock is the environment variable that names a file with a duration by which Now is shifted in a build with the tag
// faultpoints. The file is read at every call, so that a test can step the clock of a running process.
const Clock = "KAPPACTL_CLOCK"

// The steps of a segment's replay.
const (
	SegmentClaimed      = "segment.claimed"       // the claim is committed, nothing is read
	SegmentReading      = "segment.reading"       // a batch of records was decoded
	SegmentCopying      = "segment.copying"       // the first rows went to the database, their COPY is open
	SegmentStaged       = "segment.staged"        // the rows are copied, the transaction is open
	SegmentBeforeCommit = "segment.before_commit" // the segment is marked done, the transaction is open
	SegmentAfterCommit  = "segment.after_commit"
)

// The steps of a live commit.
const (
	LiveClaimed      = "live.claimed"       // positions were claimed
	LiveFetched      = "live.fetched"       // records were read
	LiveBegin        = "live.begin"         // the transaction is open
	LivePositions    = "live.positions"     // the positions are moved, the transaction is open
	LiveUpserted     = "live.upserted"      // the rows are merged, the transaction is open
	LiveBeforeCommit = "live.before_commit" // everything is written, the transaction is open
	LiveAfterCommit  = "live.after_commit"
)

// Names lists the points of speedlayer, for tests that go through all of them. Other packages name their own.
func Names() []string {
	return []string{
		SegmentClaimed, SegmentReading, SegmentCopying, SegmentStaged, SegmentBeforeCommit, SegmentAfterCommit,
		LiveClaimed, LiveFetched, LiveBegin, LivePositions, LiveUpserted, LiveBeforeCommit, LiveAfterCommit,
	}
}
