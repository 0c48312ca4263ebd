package batchlayer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
)

func TestRunsShowWhatAllRecordsGiveWhileTheSpeedLayerGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	r.agent("a")
	r.agent("b")
	for range 5 {
		r.produce(2000)
		r.run(ledger.Args{})
		r.caughtUp()
		r.equal("after a run")
	}
	r.dropped(2)
	got := r.generations()
	want := map[int]generation.State{
		5: generation.Live, 4: generation.Kept, 3: generation.Kept, 2: generation.Retired, 1: generation.Retired, 0: generation.Retired,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.equal("after the removal of old generations")
	if n := r.one(`SELECT count(*) FROM public.sums__v1 WHERE _epoch < 3`); n != "0" {
		t.Errorf("%s rows of epochs that no generation needs", n)
	}
	if n := r.one(`SELECT count(*) FROM pg_class WHERE relname LIKE '%staging'`); n != "0" {
		t.Errorf("%s staging tables are left", n)
	}
	if n := r.one(`SELECT count(*) FROM kappactl.batch_segment`); n != "0" {
		t.Errorf("%s segments are left", n)
	}
}

func TestIncrementalRunsEqualFullOnesToTheDigit(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums, withBatch(func(b *job.Batch) { b.FullEvery = 24 * time.Hour; b.KeepGenerations = 10 }))
	r.agent("a")
	for range 3 {
		r.produce(3000)
		r.caughtUp()
		r.run(ledger.Args{})
		r.equal("after an incremental run")
	}
	r.run(ledger.Args{Full: true})
	bases := r.lines(`SELECT generation, base FROM kappactl.generation ORDER BY 1`)
	if diff := cmp.Diff([]string{"(0,)", "(1,0)", "(2,1)", "(3,2)", "(4,)"}, bases); diff != "" {
		t.Error(diff)
	}
	members := func(generation string) []string {
		return r.lines(`SELECT k, n, total__s, low, high FROM public.sums__v1_g` + generation + ` ORDER BY 1`)
	}
	if diff := cmp.Diff(members("3"), members("4")); diff != "" {
		t.Errorf("incremental (-), full (+): %s", diff)
	}
	if read := r.one(`SELECT count(*) FROM kappactl.generation WHERE changed > 0`); read != "0" {
		t.Errorf("%s generations differ from what readers saw", read)
	}
}

func TestAGenerationThatDiffersIsRefusedUnlessAPersonAcceptsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	r.agent("a")
	r.produce(2000)
	r.caughtUp()
	r.run(ledger.Args{})
	r.exec(`UPDATE public.sums__v1_g1 SET n = n + 1 WHERE k = 'key-7'`) // what readers see is wrong
	a := r.ask(ledger.BatchRun, ledger.Args{})
	if a.Code != job.ExitChecks || a.Reason.Code != reason.CodeBatchChanged || a.Next != "kappactl batch run sums --accept-changes" {
		t.Errorf("exit %d, %s, next %s", a.Code, a.Text(), a.Next)
	}
	if diff := cmp.Diff(map[int]generation.State{0: generation.Kept, 1: generation.Live, 2: generation.Failed}, r.generations()); diff != "" {
		t.Error(diff)
	}
	if l := r.layers(); l.Live.Generation != 1 || l.Last.Generation != 2 || l.Epoch != 2 || l.Epochs != 2 || l.OldestEpoch != 0 ||
		l.Building != nil || *l.CutAgeSeconds <= 0 || len(l.Generations) != 3 || !slices.Equal(l.Kept, []int{0}) {
		t.Errorf("layers %+v", l)
	}
	r.produce(1000) // into the epoch of the generation that failed
	r.caughtUp()
	r.run(ledger.Args{AcceptChanges: true}) // the generation that was refused
	r.equal("after the changes were accepted")
	if got := r.lines(`SELECT changed, accepted, error, exit_code FROM kappactl.generation WHERE generation = 2`)[0]; got != "(1,t,{},)" {
		t.Errorf("changed, accepted, error, exit code: %s", got)
	}
	if l := r.layers(); l.Live.Generation != 2 || l.Last.Generation != 2 || l.Epochs != 1 || !slices.Equal(l.Kept, []int{1, 0}) {
		t.Errorf("layers %+v", l)
	}
	r.exec(`UPDATE public.sums__v1_g2 SET n = n + 1 WHERE k = 'key-7'`)
	if a := r.ask(ledger.BatchRun, ledger.Args{}); a.Code != job.ExitChecks {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	r.run(ledger.Args{AcceptChanges: true, Full: true}) // a new one
	r.equal("after a new run whose changes were accepted")
	if got := r.generations(); got[3] != generation.Failed && got[3] != generation.Retired || got[4] != generation.Live {
		t.Errorf("states %v", got)
	}
	r.dropped(3)
}

// TestChecksDecideAboutAGeneration: as they do about a version, whatever batch.compare is.
func TestChecksDecideAboutAGeneration(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums, withBatch(func(b *job.Batch) { b.Compare = false }), func(s *job.Spec) {
		s.Checks = []job.Check{
			{Name: "no_loss", SQL: "SELECT (SELECT sum(n) FROM candidate) >= (SELECT sum(n) FROM live)", Timeout: time.Minute},
			{Name: "close", Diff: &job.DiffLimit{MaxChanged: 0.01}, Timeout: time.Minute},
			{Name: "later", SQL: "SELECT false", When: job.CheckAfter, Timeout: time.Minute},
		}
	})
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchFilled && r.generations()[2] == generation.Building {
				r.exec(`DELETE FROM public.sums__v1_g2 WHERE k = 'key-7'`) // a fault of the batch layer
			}
		}
	})
	r.produce(2000)
	r.caughtUp()
	r.run(ledger.Args{})
	r.produce(500)
	r.caughtUp()
	a := r.ask(ledger.BatchRun, ledger.Args{})
	for _, want := range []string{`check "no_loss": fail`, `check "close": fail: 0 keys changed, 1 only in sums__v1_g1, 0 only in sums__v1_g2`} {
		if a.Code != job.ExitChecks || a.Reason.Code != reason.CodeBatchChecked || !strings.Contains(a.Text(), want) {
			t.Errorf("exit %d, %s, want %s", a.Code, a.Text(), want)
		}
	}
	r.equal("after a generation was refused")
	if got := r.one(`SELECT detail #>> '{checks,1,diff,only_a}' FROM kappactl.event WHERE kind = 'batch_failed'`); got != "1" {
		t.Errorf("the history holds %q", got)
	}
	r.run(ledger.Args{AcceptChanges: true})
	if n := r.one(`SELECT count(*) FROM (` + serving.New(serving.Config{}).Select(r.v) + `) AS q WHERE k = 'key-7'`); n != "0" {
		t.Error("the accepted generation is not shown")
	}
	if a := r.ask(ledger.BatchRollback, ledger.Args{Generation: 1}); a.Code != job.ExitOK {
		t.Errorf("rollback: exit %d, %s", a.Code, a.Text())
	}
	r.equal("after the rollback")
	r.run(ledger.Args{})
	r.equal("after the next run")
}

func TestRollbackShowsAKeptGenerationAndEndsTheRunUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	stop := r.agent("a")
	for range 3 {
		r.produce(1000)
		r.caughtUp()
		r.run(ledger.Args{})
	}
	stop()
	r.exec(`UPDATE public.sums__v1_g3 SET n = 0`) // a bad generation
	held := make(chan struct{})
	reached := make(chan struct{}, 1)
	r.agent("b", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchFilled {
				reached <- struct{}{}
				<-held
			}
		}
	})
	running := r.asked(ledger.BatchRun, ledger.Args{})
	<-reached
	a := r.ask(ledger.BatchRollback, ledger.Args{Generation: 1})
	if a.Code != job.ExitOK || a.Reason.Code != reason.CodeBatchRolledBack {
		t.Fatalf("rollback: exit %d, %s", a.Code, a.Text())
	}
	kafkatest.Until(t, "what the run has made is removed", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.generation WHERE generation = 4 AND state = 'retired'`) == "1"
	})
	close(held)
	if ended := r.answer(running); ended.Code != job.ExitFailed || ended.Reason.Code != reason.CodeBatchCancelled {
		t.Errorf("the run: exit %d, %s", ended.Code, ended.Text())
	}
	r.produce(500)
	r.caughtUp()
	r.equal("after two generations back")
	if a := r.ask(ledger.BatchRollback, ledger.Args{Generation: 4}); a.Code != job.ExitConflict || a.Reason.Code != reason.CodeBatchNotKept {
		t.Errorf("rollback to a failed generation: exit %d, %s", a.Code, a.Text())
	}
	r.run(ledger.Args{})
	if got := r.generations(); got[5] != generation.Live || got[1] != generation.Kept {
		t.Errorf("states %v", got)
	}
	r.equal("after the next run")
}

func TestARunGoesOnWithAnotherAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	for _, point := range []string{
		FaultBatchRotated, FaultBatchBegun, FaultBatchRead, FaultBatchFilled, FaultBatchIndexed, FaultBatchCompared, FaultBatchAttached, FaultBatchShown,
	} {
		reached := make(chan struct{}, 1)
		hold := make(chan struct{})
		stop := r.agent("first-"+point, func(b *Runner) {
			b.hook = func(at string) {
				if at == point {
					reached <- struct{}{}
					<-hold
				}
			}
		})
		r.produce(500)
		id := r.asked(ledger.BatchRun, ledger.Args{})
		<-reached
		go close(hold)
		stop() // in the middle
		second := r.agent("second-" + point)
		if a := r.answer(id); a.Code != job.ExitOK {
			t.Fatalf("%s: exit %d, %s", point, a.Code, a.Text())
		}
		r.caughtUp()
		r.equal(point)
		second()
	}
	if n := r.one(`SELECT count(*) FROM kappactl.generation WHERE state = 'failed'`); n != "0" {
		t.Errorf("%s generations failed", n)
	}
}

func TestOneGenerationOfAVersionIsBuiltAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	reached, held := make(chan struct{}, 1), make(chan struct{})
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchBegun {
				select {
				case reached <- struct{}{}:
					<-held
				default:
				}
			}
		}
	})
	r.produce(100)
	r.caughtUp()
	first := r.asked(ledger.BatchRun, ledger.Args{})
	<-reached
	if a := r.ask(ledger.BatchRun, ledger.Args{}); a.Code != job.ExitConflict || a.Reason.Code != reason.CodeBatchUnderWay {
		t.Errorf("a second run: exit %d, %s", a.Code, a.Text())
	}
	tick := time.Now()
	later := r.asked(ledger.BatchRun, ledger.Args{Tick: &tick})
	close(held)
	for _, id := range []int64{first, later} {
		if a := r.answer(id); a.Code != job.ExitOK {
			t.Errorf("exit %d, %s", a.Code, a.Text())
		}
	}
	kafkatest.Until(t, "the second one is live", func() bool { return r.generations()[2] == generation.Live })
}

func TestCancelEndsARunAndLeavesTheLiveGeneration(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	reached, held := make(chan struct{}, 1), make(chan struct{})
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchRead {
				reached <- struct{}{}
				<-held
			}
		}
	})
	r.produce(1000)
	r.caughtUp()
	running := r.asked(ledger.BatchRun, ledger.Args{})
	<-reached
	if b := r.layers().Building; b == nil || b.Generation != 1 || b.Progress.Share() != 1 || b.Progress.OffsetsRemaining != 0 {
		t.Errorf("building %+v", b)
	}
	if a := r.ask(ledger.BatchCancel, ledger.Args{}); a.Code != job.ExitOK {
		t.Errorf("cancel: exit %d, %s", a.Code, a.Text())
	}
	close(held)
	if a := r.answer(running); a.Code != job.ExitFailed || a.Reason.Code != reason.CodeBatchCancelled {
		t.Errorf("the run: exit %d, %s", a.Code, a.Text())
	}
	if a := r.ask(ledger.BatchCancel, ledger.Args{}); a.Code != job.ExitNothing {
		t.Errorf("cancel of nothing: exit %d, %s", a.Code, a.Text())
	}
	r.equal("after the cancelled run")
}

// A generation from scratch is not computed from an archive that may lack deletes, unless a person accepts it.
func TestALostDeleteRefusesARunFromScratch(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums, withBatch(func(b *job.Batch) { b.FullEvery = time.Hour }))
	r.agent("a")
	r.produce(2000)
	r.caughtUp()
	r.exec(`INSERT INTO kappactl.archive (topic_id, topic, cluster_id, location, roll_every, roll_size)
		VALUES (gen_random_uuid(), '` + r.topic + `', 'c', 'file:///none', '1h', 1)`)
	r.exec(`INSERT INTO kappactl.archive_position (topic_id, partition, start_offset, next, deletes_lost_to) SELECT topic_id, 1, 3, 9, 9 FROM kappactl.archive`)
	a := r.ask(ledger.BatchRun, ledger.Args{Full: true})
	if a.Code != job.ExitGap || a.Reason.Code != reason.CodeArchiveLostDeletes || a.Next != "kappactl batch run sums v1 --full --accept-lost-deletes" {
		t.Errorf("exit %d, %s, next %s", a.Code, a.Text(), a.Next)
	}
	if got := r.generations(); len(got) != 1 || got[0] != generation.Live {
		t.Errorf("generations %v", got)
	}
	r.run(ledger.Args{Full: true, AcceptLostDeletes: true})
	r.equal("after the deletes were given up")
}
