package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
)

// words say what the flip did and how to undo it.
func (f *flip) words(keep time.Duration) (text, next string) {
	to := f.st.ref()
	switch {
	case f.from == nil:
		return fmt.Sprintf("%s is live", to), "kappactl status " + f.st.Job
	case f.back && f.actor.reason != "":
		return fmt.Sprintf("rolled back to %s: %s", to, f.actor.reason), "kappactl status " + f.st.Job
	case f.back:
		return fmt.Sprintf("rolled back: %s is live again, %s stays for %s", to, f.from.Number, words(keep)), "kappactl deploy FILE --again"
	}
	return fmt.Sprintf("%s is live, %s stays for %s", to, f.from.Number, words(keep)), "kappactl rollback " + f.st.Job
}

// warnings are what a person who forced the flip has to know of it.
func (f *flip) warnings() string {
	text := ""
	if f.behind != "" {
		text += fmt.Sprintf("\nwarning: %s was not up to date: %s; readers miss what came since until it has caught up", f.st.ref(), f.behind)
	}
	if n := len(f.ignored); n > 0 {
		text += fmt.Sprintf("\nwarning: %s with a snapshot older than the flip not waited for; in that transaction counters can fall:%s",
			count(n, "reader", "was", "were"), lines(f.ignored))
	}
	return text
}

// count is "1 reader was", "2 readers were".
func count(n int, noun, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", noun, one)
	}
	return fmt.Sprintf("%d %ss %s", n, noun, many)
}

// flipDetail is what the history keeps of a flip beside its text.
type flipDetail struct {
	Seconds float64 `json:"seconds"` // of the try that succeeded
	From    *int    `json:"from"`    // the version that readers left
	// XID is the flip's transaction: who holds a snapshot with a later xmin has seen it.
	XID     string    `json:"xid"`
	Ignored []Blocker `json:"ignored_readers,omitempty"`
}

func (f *flip) detail(ctx context.Context, tx *pg.Tx) (flipDetail, error) {
	d := flipDetail{Seconds: f.took().Seconds(), Ignored: f.ignored}
	if f.from != nil {
		d.From = new(int(f.from.Number))
	}
	err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&d.XID)
	return d, wrap(err, "read the transaction's id")
}
