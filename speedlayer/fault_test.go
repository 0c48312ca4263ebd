package speedlayer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// fault waits for a fault of partition p and returns it.
func (r *rig) fault(p int32) job.Fault {
	r.t.Helper()
	var found job.Fault
	kafkatest.Until(r.t, "a fault is written", func() bool {
		for _, at := range positions(r.t, r.pool, r.ref) {
			if at.ID == p {
				found = at.Fault
			}
		}
		return found.Kind != job.FaultNone
	})
	return found
}

func (r *rig) next(p int32) int64 {
	r.t.Helper()
	for _, at := range positions(r.t, r.pool, r.ref) {
		if at.ID == p {
			return at.Next
		}
	}
	r.t.Fatalf("no position of partition %d", p)
	return 0
}

func TestAGapStopsItsPartitionUntilItIsCleared(t *testing.T) { // R01
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers, 2, sums)
		r.startLive()
		stop := r.agent("a", nil)
		r.produce(0, 200, 3)
		r.caughtUp()
		stop()
		r.produce(0, 300, 20)
		r.produce(1, 300, 20)
		kafkatest.DeleteRecords(t, brokers, r.topic, 0, 10)
		r.agent("b", nil)
		got := r.fault(0)
		if got.Kind != job.FaultGap || got.From != 3 || got.To != 10 {
			t.Errorf("fault %+v, want a gap [3,10)", got)
		}
		kafkatest.Until(t, "the other partition goes on", func() bool { return r.next(1) == 20 })
		if n := r.next(0); n != 3 {
			t.Errorf("the position went over the gap to %d", n)
		}
		exec(t, r.pool, `UPDATE kappactl.position SET fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, next = 10 WHERE partition = 0`, nil)
		kafkatest.Until(t, "the partition goes on behind the accepted gap", func() bool { return r.next(0) == 23 })
		if n := r.one(`SELECT records FROM kappactl.position WHERE partition = 0`); n != 3+13 {
			t.Errorf("%d records, want the 3 before the gap and the 13 after it", n)
		}
	})
}

func TestAGapInAReplayIsWrittenBesideTheSegment(t *testing.T) { // R01
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 40)
	r.startReplay(10)
	kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 15)
	r.agent("a", nil)
	kafkatest.Until(t, "the first hole is shown", func() bool {
		got := r.fault(0)
		return got.Kind == job.FaultGap && got.From == 0 && got.To == 15
	})
	kafkatest.Until(t, "the segments behind it are done", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.segment WHERE state = 'done'`) == 2
	})
}

func TestATopicMadeAnewIsAFaultAndNothingOfItIsRead(t *testing.T) { // R03
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	r.agent("a", nil)
	r.produce(0, 200, 40)
	r.caughtUp()
	before := r.served()
	kafkatest.DeleteTopic(t, r.brokers, r.topic)
	kafkatest.CreateTopic(t, r.brokers, r.topic, 1, nil)
	r.produce(0, 300, 100)
	if got := r.fault(0); got.Kind != job.FaultRecreated && got.Kind != job.FaultMissing {
		t.Errorf("fault %+v, want recreated", got)
	}
	if diff := cmp.Diff(before, r.served()); diff != "" {
		t.Errorf("records of the new topic were mixed in:\n%s", diff)
	}
}

func TestDeadLettersAreStoredWithThePositions(t *testing.T) { // D13
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	bad := func(i int) {
		r.produce(0, i, 10)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":"abc"}`, `{"k":`)
		r.produce(0, i+10, 10)
	}
	bad(200)
	r.startReplay(5)
	r.agent("a", nil)
	r.build()
	bad(300)
	r.caughtUp()
	r.equal()
	want := []string{"(10)", "(11)", "(32)", "(33)"}
	if diff := cmp.Diff(want, lines(t, r.pool, `SELECT "offset" FROM kappactl.dead_letter ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
	p := positions(t, r.pool, r.ref)[0]
	if p.DeadLetters != 4 || p.Records != 44 {
		t.Errorf("%d dead letters of %d records, want 4 of 44", p.DeadLetters, p.Records)
	}
	if got := lines(t, r.pool, `SELECT convert_from(payload, 'UTF8') AS p, size, reason <> '' AS r FROM kappactl.dead_letter WHERE "offset" = 32`); got[0] != `("{""k"":""x"",""v"":""abc""}",19,t)` {
		t.Errorf("dead letter %s", got[0])
	}
}

func TestOnErrorFailStopsAtTheRecord(t *testing.T) { // D13
	t.Parallel()
	fail := func(s *job.Spec) { s.Source.OnError = job.OnError{Fail: true} }
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, kafkatest.Fake(t), 2, sums, fail)
		r.startLive()
		r.produce(0, 200, 250)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":"abc"}`)
		r.produce(0, 500, 50)
		r.produce(1, 500, 50)
		r.agent("a", nil)
		got := r.fault(0)
		if got.Kind != job.FaultRecord || got.From != 250 || got.To != 251 || !strings.Contains(got.Detail, r.topic+"/0@250") {
			t.Errorf("fault %+v, want record at 250", got)
		}
		kafkatest.Until(t, "the other partition goes on", func() bool { return r.next(1) == 50 })
		if n := r.next(0); n != 250 {
			t.Errorf("next = %d, want 250", n)
		}
		if diff := cmp.Diff(r.oracle(map[int32]int64{0: 250, 1: 50}), r.served()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, kafkatest.Fake(t), 1, sums, fail)
		r.produce(0, 200, 25)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":"abc"}`)
		r.startReplay(10)
		r.agent("a", nil)
		if got := r.fault(0); got.Kind != job.FaultRecord || got.From != 25 {
			t.Errorf("fault %+v, want record at 25", got)
		}
	})
}

// failing raises an error for v = 777.
const failing = `SELECT k, count(*) AS n, sum(CAST(CASE WHEN v = 777 THEN 'no number' ELSE '1' END AS BIGINT)) AS total FROM source GROUP BY k`

func TestARecordOverWhichTheQueryFailsIsADeadLetterOfItsBatch(t *testing.T) { // D13
	t.Parallel()
	bad := func(r *rig, n int) {
		r.produce(0, n, 250)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`, `{"k":"y","v":777}`)
		r.produce(0, n+250, 248)
	}
	letters := func(r *rig) []string {
		return lines(t, r.pool, `SELECT "offset", reason, detail LIKE '%no number%' AS said FROM kappactl.dead_letter ORDER BY 1`)
	}
	counts := func(r *rig) []string { return lines(t, r.pool, `SELECT sum(n) FROM public.sums__v1`) }
	r := newRig(t, kafkatest.Fake(t), 1, failing)
	bad(r, 1000)
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	bad(r, 2000)
	r.caughtUp()
	want := []string{"(250,query_error,t)", "(251,query_error,t)", "(750,query_error,t)", "(751,query_error,t)"}
	if diff := cmp.Diff(want, letters(r)); diff != "" {
		t.Error(diff)
	}
	if got := counts(r)[0]; got != "(996)" {
		t.Errorf("counted %s, want the 996 others", got)
	}
	if p := positions(t, r.pool, r.ref)[0]; p.DeadLetters != 4 || p.Records != 1000 {
		t.Errorf("%d dead letters of %d records", p.DeadLetters, p.Records)
	}
}

func TestOnErrorFailStopsAtTheRecordOverWhichTheQueryFails(t *testing.T) {
	t.Parallel()
	fail := func(s *job.Spec) { s.Source.OnError = job.OnError{Fail: true} }
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, kafkatest.Fake(t), 2, failing, fail)
		r.startLive()
		r.produce(0, 200, 60)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`)
		r.produce(0, 300, 60)
		r.produce(1, 300, 60)
		r.agent("a", nil)
		got := r.fault(0)
		if got.Kind != job.FaultRecord || got.From != 60 || !strings.Contains(got.Detail, r.topic+"/0@60") || !strings.Contains(got.Detail, "no number") {
			t.Errorf("fault %+v, want the query's error at 60", got)
		}
		kafkatest.Until(t, "the other partition goes on", func() bool { return r.next(1) == 60 })
		if n := r.next(0); n != 60 {
			t.Errorf("next = %d, want everything before the record", n)
		}
	})
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, kafkatest.Fake(t), 1, failing, fail)
		r.produce(0, 200, 35)
		kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`)
		r.produce(0, 300, 10)
		r.startReplay(20)
		r.agent("a", nil)
		got := r.fault(0)
		if got.Kind != job.FaultRecord || got.From != 35 || !strings.Contains(got.Detail, r.topic+"/0@35") {
			t.Errorf("fault %+v, want the query's error at 35 in its segment", got)
		}
	})
}

func TestAValueThatPostgreSQLRefusesIsADeadLetter(t *testing.T) { // D01
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT CASE WHEN v = 777 THEN 'a' || chr(0) ELSE k END AS k2, count(*) AS n FROM source GROUP BY k2`)
	r.produce(0, 200, 10)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`)
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`)
	r.produce(0, 300, 10)
	r.caughtUp()
	want := []string{"(10,query_error)", "(11,query_error)"}
	if diff := cmp.Diff(want, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
	if got := r.one(`SELECT sum(n) FROM public.sums__v1`); got != 20 {
		t.Errorf("counted %d", got)
	}
}

func TestARecordWhoseKeyIsTooLongIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	long := func() {
		kafkatest.Produce(t, r.brokers, r.topic, 0, fmt.Sprintf(`{"k":%q,"v":5}`, bytes.Repeat([]byte("ab"), 1001)))
	}
	r.produce(0, 200, 30)
	long()
	r.produce(0, 300, 30)
	long()
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	r.produce(0, 400, 30)
	long()
	r.produce(0, 500, 30)
	r.caughtUp()
	r.equal()
	want := []string{"(30,key_too_long)", "(61,key_too_long)", "(92,key_too_long)"}
	if diff := cmp.Diff(want, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorOfTheMergeNamesTheRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	exec(t, r.pool, `ALTER TABLE public.sums__v1 ADD CHECK (high < 5000)`, nil)
	r.startLive()
	r.produce(0, 200, 10)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":5001}`)
	r.produce(0, 300, 10)
	r.agent("a", nil)
	if got := r.fault(0); got.Kind != job.FaultQuery || got.From != 10 {
		t.Errorf("fault %+v, want the query's error at 10", got)
	}
}

func TestASegmentThatIsTooLargeIsSplitWhereItHasGot(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	random := rand.NewChaCha8([32]byte{})
	for i := range 60 {
		noise := make([]byte, 50_000) // a fetch is bounded by compressed bytes
		if _, err := random.Read(noise); err != nil {
			t.Fatal(err)
		}
		pad := hex.EncodeToString(noise)
		kafkatest.Produce(t, r.brokers, r.topic, 0, fmt.Sprintf(`{"k":"key-%d","v":%d,"pad":%q}`, i%7, i, pad))
	}
	r.startReplay(0)
	r.agent("a", func(e *Engine) { e.unpacked = 1_500_000 })
	r.build()
	r.caughtUp()
	r.equal()
	if n := r.one(`SELECT count(*) FROM kappactl.segment`); n < 3 {
		t.Errorf("%d segments, want the one split several times", n)
	}
}

func TestTroublesAreSaidOnceAMinute(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	q := newQuiet(testLog(&out), func() time.Time { return now })
	say := func() { q.warn("away", errFenced) }
	for range 100 {
		say()
	}
	now = now.Add(61 * time.Second)
	say()
	q.over("away")
	q.over("away")
	say()
	got := strings.Count(out.String(), "msg=away ")
	if got != 3 || !strings.Contains(out.String(), "times_since=99") || strings.Count(out.String(), "away: over") != 1 {
		t.Errorf("said %d times:\n%s", got, out.String())
	}
}

func TestTheBucketLetsOneSecondThroughAndThenKeepsTheRate(t *testing.T) {
	now := time.Unix(100, 0)
	b := &bucket{now: func() time.Time { return now }}
	if d := b.debt(1 << 40); d != 0 {
		t.Errorf("without a rate: %s", d)
	}
	b.set(1000)
	for i, c := range []struct {
		pass time.Duration
		n    int
		want time.Duration
	}{
		{0, 1000, 0},
		{0, 500, 500 * time.Millisecond},
		{500 * time.Millisecond, 0, 0},
		{0, 1000, time.Second},
		{time.Hour, 1000, 0},
		{0, 1, time.Millisecond},
	} {
		now = now.Add(c.pass)
		if got := b.debt(c.n); got != c.want {
			t.Errorf("step %d: wait %s, want %s", i, got, c.want)
		}
	}
}

// TestAValueThatIsTooLongForAnIndexIsADeadLetter: it stopped its partition, and taking the index out did not let it go on.
func TestAValueThatIsTooLongForAnIndexIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, `SELECT k AS note, v FROM source`)
	exec(t, r.pool, `CREATE INDEX note ON public.sums__v1 (note)`, nil) // serve.indexes: [[note]]
	r.startLive()
	r.agent("a", nil)
	raw := make([]byte, 3000)
	for i := range raw {
		raw[i] = byte(rand.Uint32())
	}
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":3}`, fmt.Sprintf(`{"k":%q,"v":4}`, hex.EncodeToString(raw)), `{"k":"y","v":5}`)
	kafkatest.Produce(t, r.brokers, r.topic, 1, `{"k":"z","v":3}`)
	r.caughtUp()
	if diff := cmp.Diff([]string{"(0,1,index_value_too_long)"}, lines(t, r.pool, `SELECT partition, "offset", reason FROM kappactl.dead_letter`)); diff != "" {
		t.Error(diff)
	}
	if n := r.one(`SELECT count(*) FROM public.sums__v1`); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}
