package ledger

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// LiveChanged is the answer to a promote of a version that was verified beside another live version than the one that
// is live now, nil when none is.
func LiveChanged(ref job.Ref, live *int) Answer {
	var is *job.Number
	next := "kappactl deploy FILE   # verifies " + ref.Number.String() + " again"
	if live != nil {
		n := job.Number(*live)
		is = &n
		next += fmt.Sprintf(", beside %s", n)
	}
	return Answer{Code: job.ExitConflict, Reason: reason.LiveChanged(ref, is), Next: next}
}

// OutdatedColumn reports whether deployment d of version v of job j waits for a promote that would be refused because
// another version is live than the one that it was verified beside. It is read and not written: it is over as soon as
// that version is live again.
const OutdatedColumn = `(d.state = 'waiting' AND d.exit_code IS NULL AND v.phase IN ('caught_up', 'verified', 'standby')
			AND j.live IS DISTINCT FROM d.previous AND j.live IS DISTINCT FROM d.number) AS outdated`

// SameNumber reports whether two numbers are the same, or both absent.
func SameNumber(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
