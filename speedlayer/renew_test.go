package speedlayer

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestLeasesAreProlongedWhenTheyAreDue: not each time that somebody looks, and only while they are held.
func TestLeasesAreProlongedWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, total(), job.Live)
	inTx(t, pool, func(tx *pg.Tx) error {
		for p := range int32(20) {
			if err := (Store{}).Follow(t.Context(), tx, ref, frozen(1, p, 0, 0, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	e := New(Deps{Pool: pool, Kafka: kafka.Config{}, Agent: "a", Now: time.Now}, Config{Lease: time.Hour})
	r := &run{Engine: e, version: &version{ref: ref}}
	got, err := r.claimPositions(t.Context(), 20, (&live{run: r}).shunArgs())
	if err != nil || len(got) != 20 {
		t.Fatalf("claimed %d: %v", len(got), err)
	}
	held := claims{}
	for _, h := range got {
		p, err := h.partition()
		if err != nil {
			t.Fatal(err)
		}
		held[p] = h.Claim
	}
	// The place of every row: a row that is written has another one.
	places := func() string {
		return lines(t, pool, `SELECT string_agg(ctid::text, ' ' ORDER BY partition) AS places FROM kappactl.position`)[0]
	}
	before := places()
	renew := func(want int) {
		t.Helper()
		if got, err := r.renewPositions(t.Context(), held); err != nil || len(got) != want {
			t.Fatalf("%d are held, want %d: %v", len(got), want, err)
		}
	}
	renew(20)
	if after := places(); after != before {
		t.Errorf("leases that have just begun were written: %s, before %s", after, before)
	}
	exec(t, pool, `UPDATE kappactl.position SET lease = clock_timestamp() + interval '30 minutes' WHERE partition < 5`, nil)
	exec(t, pool, `UPDATE kappactl.position SET lease = clock_timestamp() - interval '1 minute' WHERE partition = 5`, nil)
	exec(t, pool, `UPDATE kappactl.position SET owner = 'b', claim = claim + 1 WHERE partition = 6`, nil)
	renew(19)
	if got := lines(t, pool, `SELECT count(*) AS n FROM kappactl.position WHERE lease > clock_timestamp() + interval '50 minutes' AND owner = 'a'`)[0]; got != "(19)" {
		t.Errorf("%s leases are long", got)
	}
}
