package pg

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestALookThatFailedBreaksTheRow: a statement is given up only for what was seen twice in a row.
func TestALookThatFailedBreaksTheRow(t *testing.T) {
	t.Parallel()
	type look struct {
		works bool
		err   error
	}
	idle, gone, busy, failed := look{}, look{err: pgx.ErrNoRows}, look{works: true}, look{err: errors.New("timeout")}
	for _, c := range []struct {
		looks []look
		want  absence
	}{
		{nil, 0},
		{[]look{idle, idle}, 2},
		{[]look{idle, gone}, 2},
		{[]look{idle, busy, idle}, 1},
		{[]look{idle, failed, idle}, 1},
		{[]look{gone, failed}, 0},
		{[]look{failed, idle, gone}, 2},
	} {
		var got absence
		for _, l := range c.looks {
			got.after(l.works, l.err)
		}
		if got != c.want {
			t.Errorf("%+v: %d, want %d", c.looks, got, c.want)
		}
	}
}
