package speedlayer

import (
	"errors"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// resting is how many versions of an engine rest.
func resting(e *Engine) int {
	e.tails.mu.Lock()
	defer e.tails.mu.Unlock()
	return len(e.tails.resting)
}

func TestAVersionThatHasReadEverythingRestsUntilMoreComes(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.startLive()
	var e *Engine
	r.agent("a", func(made *Engine) { e = made })
	for round := range 3 {
		kafkatest.Until(t, "the version rests", func() bool { return resting(e) == 1 })
		r.produce(int32(round%2), 100*round, 100)
		r.caughtUp()
	}
	r.equal()
}

func TestWhatIsWatchedWakesForAllThatIsOdd(t *testing.T) {
	t.Parallel()
	p := job.Partition{Topic: "t", TopicID: topicID(1), ID: 0}
	same := job.PartitionFacts{Partition: p, LeaderEpoch: 3, Start: 0, LastStable: 10, End: 10}
	b := bed{marks: map[job.Partition]mark{p: {next: 10, epoch: 3}}}
	for name, c := range map[string]struct {
		change func(*job.PartitionFacts)
		quiet  bool
	}{
		"nothing":                   {func(*job.PartitionFacts) {}, true},
		"an open transaction":       {func(f *job.PartitionFacts) { f.End = 12 }, true},
		"no leader":                 {func(f *job.PartitionFacts) { f.Err, f.End, f.LastStable = errors.New("no leader"), -1, -1 }, true},
		"a record":                  {func(f *job.PartitionFacts) { f.End, f.LastStable = 11, 11 }, false},
		"a log that was cut":        {func(f *job.PartitionFacts) { f.End, f.LastStable = 9, 9 }, false},
		"retention ahead of it":     {func(f *job.PartitionFacts) { f.Start, f.End, f.LastStable = 20, 20, 20 }, false},
		"another leader":            {func(f *job.PartitionFacts) { f.LeaderEpoch = 4 }, false},
		"another topic of its name": {func(f *job.PartitionFacts) { f.TopicID = topicID(2) }, false},
	} {
		f := same
		c.change(&f)
		if got := b.quiet(map[job.Partition]job.PartitionFacts{f.Partition: f}); got != c.quiet {
			t.Errorf("%s: quiet is %t", name, got)
		}
	}
	if b.quiet(nil) {
		t.Error("a topic that is gone is quiet")
	}
}

// TestLeasesOfManyVersionsAreProlongedTogether: only those that are ours and due, and a row that a commit has locked keeps nobody waiting.
func TestLeasesOfManyVersionsAreProlongedTogether(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, total(), job.Live)
	other := job.Ref{Job: ref.Job, Number: 2}
	newVersion(t, pool, other, total(), job.Standby, "")
	for _, v := range []job.Ref{ref, other} {
		for p := range int32(3) {
			inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Follow(t.Context(), tx, v, frozen(1, p, 0, 0, 0)) })
		}
	}
	e := New(Deps{Pool: pool, Kafka: kafka.Config{}, Agent: "a", Now: time.Now}, Config{Lease: time.Hour})
	look := func(v job.Ref) seen {
		t.Helper()
		all, err := e.readAll(t.Context(), []job.Ref{ref, {Job: "gone", Number: 1}, other})
		if err != nil {
			t.Fatal(err)
		}
		if m := all[1].mode(1); m != over {
			t.Errorf("a version that is gone: mode %v", m)
		}
		if v == ref {
			return all[0]
		}
		return all[2]
	}
	for _, v := range []job.Ref{ref, other} {
		r := &run{Engine: e, version: &version{ref: v}}
		if got, err := r.claimPositions(t.Context(), 2, (&live{run: r}).shunArgs()); err != nil || len(got) != 2 {
			t.Fatalf("claimed %v: %v", got, err)
		}
	}
	before := look(ref)
	if before.total != 3 || before.free != 1 || before.due || before.digest == 0 {
		t.Errorf("after the claim: %+v", before)
	}
	const due = `UPDATE kappactl.position SET lease = clock_timestamp() + interval '1 minute' WHERE owner = 'a'`
	exec(t, pool, due, nil)
	if s := look(ref); !s.due || s.digest != before.digest {
		t.Errorf("when the lease is short: %+v, before %+v", s, before)
	}
	exec(t, pool, `UPDATE kappactl.position SET owner = 'b', claim = claim + 1 WHERE number = 2 AND partition = 0`, nil)
	inTx(t, pool, func(tx *pg.Tx) error { // a commit in hand
		if _, err := tx.Exec(t.Context(), `SELECT 1 FROM kappactl.position WHERE number = 1 AND partition = 0 FOR UPDATE`); err != nil {
			return err
		}
		return e.prolongAll(t.Context(), []job.Ref{ref, other})
	})
	long := func() []string {
		t.Helper()
		return lines(t, pool, `SELECT number, partition FROM kappactl.position WHERE lease > clock_timestamp() + interval '50 minutes' ORDER BY 1, 2`)
	}
	if got := long(); len(got) != 2 || got[0] != "(1,1)" || got[1] != "(2,1)" {
		t.Errorf("prolonged are %v, want all but the locked one and the one that was lost", got)
	}
	if err := e.prolongAll(t.Context(), []job.Ref{ref, other}); err != nil {
		t.Fatal(err)
	}
	if got := long(); len(got) != 3 {
		t.Errorf("after the commit: %v", got)
	}
	for _, change := range []string{
		`UPDATE kappactl.position SET fault = 'gap' WHERE number = 1 AND partition = 0`,
		`UPDATE kappactl.position SET claim = claim + 1 WHERE number = 1 AND partition = 1`,
		`UPDATE kappactl.position SET owner = NULL, lease = NULL WHERE number = 1 AND partition = 1`,
	} {
		was := look(ref).digest
		exec(t, pool, change, nil)
		if look(ref).digest == was {
			t.Errorf("not seen: %s", change)
		}
	}
}
