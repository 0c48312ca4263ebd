package batchlayer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

func keep(n int) option { return withBatch(func(b *job.Batch) { b.KeepGenerations = n }) }

// reading opens a transaction whose snapshot is taken by a statement on another table than the version's.
func (r *rig) reading(isolation pgx.TxIsoLevel) pgx.Tx {
	r.t.Helper()
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close(context.WithoutCancel(r.t.Context())) })
	tx, err := conn.BeginTx(r.t.Context(), pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Exec(r.t.Context(), `SELECT count(*) FROM pg_class`); err != nil {
		r.t.Fatal(err)
	}
	return tx
}

func (r *rig) totalIn(tx pgx.Tx) (n int64) {
	r.t.Helper()
	// By the simple protocol: an unnamed portal would keep its snapshot after the statement.
	err := tx.QueryRow(r.t.Context(), "SELECT sum(n)::bigint FROM ("+serving.New(serving.Config{}).Select(r.v)+") AS q",
		pgx.QueryExecModeSimpleProtocol).Scan(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// TestAnOldSnapshotKeepsTheGenerationThatItSees: runs and flips do not wait for open readers, and removals do.
func TestAnOldSnapshotKeepsTheGenerationThatItSees(t *testing.T) { // pitfalls 8, 9 and 25
	t.Parallel()
	r := newRig(t, sums, keep(0))
	r.agent("a")
	r.produce(1000)
	r.caughtUp()
	want := r.one(`SELECT sum(n) FROM (` + serving.New(serving.Config{}).Select(r.v) + `) AS q`)
	untouched, touched, statements := r.reading(pgx.RepeatableRead), r.reading(pgx.RepeatableRead), r.reading(pgx.ReadCommitted)
	if n := r.totalIn(touched); fmt.Sprint(n) != want {
		t.Errorf("%d, not %s", n, want)
	}
	r.totalIn(statements)
	for range 3 {
		r.produce(500)
		r.run(ledger.Args{}) // while all three are open
	}
	r.caughtUp()
	r.equal("with open readers")
	g, err := generation.Read(t.Context(), r.pool, r.v.Ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.Until(t, "the list names whom the removal waits for", func() bool {
		return r.troubles()[0].Is(reason.CodeBatchWaitsReaders)
	})
	readers, err := generation.Readers(t.Context(), r.unprivileged(), g.ID)
	if err != nil || len(readers) < 2 {
		t.Errorf("a role without pg_read_all_stats sees only %v (%v)", readers, err)
	}
	for _, tx := range []pgx.Tx{untouched, touched} {
		if n := r.totalIn(tx); fmt.Sprint(n) != want {
			t.Errorf("an old snapshot sees %d, not %s", n, want)
		}
	}
	if n := r.totalIn(statements); fmt.Sprint(n) == want {
		t.Error("a new statement sees old rows")
	}
	for _, tx := range []pgx.Tx{untouched, touched, statements} {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for k := range 3 {
		r.dropped(k)
	}
	r.equal("after the removals")
}

// unprivileged is a pool of a role that may read the control tables only.
func (r *rig) unprivileged() *pg.Pool {
	r.t.Helper()
	name := "plain_" + strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(r.topic))
	r.exec(`CREATE ROLE ` + name + ` LOGIN PASSWORD 'p'`)
	r.exec(`GRANT USAGE ON SCHEMA ` + r.pool.Schema() + ` TO ` + name + `; GRANT SELECT ON ALL TABLES IN SCHEMA ` + r.pool.Schema() + ` TO ` + name)
	r.t.Cleanup(func() {
		_, err := r.pool.Exec(context.WithoutCancel(r.t.Context()), `DROP OWNED BY `+name+`; DROP ROLE `+name)
		if err != nil {
			r.t.Error(err)
		}
	})
	pool, err := pg.Open(r.t.Context(), pg.Config{DSN: pgtest.As(r.dsn, name, "p")})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(pool.Close)
	return pool
}

// TestGenerationsAreRemovedBehindAPoolerAndByPieces: behind a transaction pooler, and when the server ends the DETACH that waits.
func TestGenerationsAreRemovedBehindAPoolerAndByPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums, keep(0))
	pooled, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.Bouncer(t, r.dsn, 3)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pooled.Close)
	r.agent("a", func(b *Runner) { b.Pool = pooled })
	r.produce(500)
	r.caughtUp()
	reader := r.reading(pgx.ReadCommitted) // touches the parent, and has no snapshot between its statements
	r.totalIn(reader)
	r.run(ledger.Args{})
	waits := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'ALTER TABLE%DETACH%CONCURRENTLY' AND wait_event_type = 'Lock'`
	kafkatest.Until(t, "the DETACH waits for the reader", func() bool { return r.one(waits) != "0" })
	r.exec(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'ALTER TABLE%DETACH%CONCURRENTLY'`)
	kafkatest.Until(t, "it is left pending", func() bool {
		return r.one(`SELECT count(*) FROM pg_inherits WHERE inhdetachpending`) == "1"
	})
	r.produce(500)
	r.run(ledger.Args{}) // the next run attaches meanwhile
	r.caughtUp()
	r.equal("beside a pending DETACH")
	if err := reader.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	r.dropped(0)
	r.dropped(1)
	r.equal("after the removals")
}

func TestAnIncrementalRunWhoseBaseIsNoLongerLiveIsVoid(t *testing.T) { // pitfall 29
	t.Parallel()
	r := newRig(t, sums, withBatch(func(b *job.Batch) { b.FullEvery = 24 * time.Hour }))
	r.agent("a", func(b *Runner) {
		b.hook = func(point string) {
			if point == FaultBatchCompared && r.one(`SELECT max(generation) FROM kappactl.generation`) == "3" {
				r.exec(`UPDATE kappactl.generation SET state = 'kept', left_at = now() WHERE generation = 2`)
				r.exec(`UPDATE kappactl.generation SET state = 'live' WHERE generation = 1`)
				r.exec(`UPDATE public.sums__v1_gen SET generation = 1`)
			}
		}
	})
	for range 2 {
		r.produce(300)
		r.caughtUp()
		r.run(ledger.Args{})
	}
	r.produce(300)
	r.caughtUp()
	if a := r.ask(ledger.BatchRun, ledger.Args{}); a.Code != job.ExitConflict || a.Reason.Code != reason.CodeBatchVoid {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	r.equal("on the base of the base")
	r.run(ledger.Args{})
	r.equal("after the next run")
	if base := r.one(`SELECT base FROM kappactl.generation WHERE generation = 4`); base != "1" {
		t.Errorf("the next run went on from %s", base)
	}
}

func TestRowsThatWereNotKeptAreNotMergedInto(t *testing.T) { // pitfall 30
	t.Parallel()
	day, early, late := 24*time.Hour, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		was, is *job.Keep
		want    bool
	}{
		{nil, nil, false},
		{nil, &job.Keep{For: day}, false},
		{&job.Keep{For: day}, nil, true},
		{&job.Keep{For: day}, &job.Keep{For: day}, false},
		{&job.Keep{For: day}, &job.Keep{For: 2 * day}, true},
		{&job.Keep{For: 2 * day}, &job.Keep{For: day}, false},
		{&job.Keep{From: &late}, &job.Keep{From: &early}, true},
		{&job.Keep{From: &early}, &job.Keep{From: &late}, false},
		{&job.Keep{From: &early}, &job.Keep{For: day}, true},
	} {
		if got := longer(c.was, c.is); got != c.want {
			t.Errorf("from %+v to %+v: %t", c.was, c.is, got)
		}
	}
}

// TestWhatAPersonLeftOutStaysOut: a record that cannot be processed is in no generation, whether the log has it or not.
func TestWhatAPersonLeftOutStaysOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, sums)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"bad","v":1}`)
	kafkatest.Produce(t, r.brokers, r.topic, 1, `{"k":"bad","v":1}`)
	r.exec(`UPDATE kappactl.position SET fault = 'record', fault_from = 0, fault_to = CASE partition WHEN 0 THEN 1 ELSE 2 END`)
	kafkatest.Produce(t, r.brokers, r.topic, 1, `{"k":"bad","v":2}`)
	err := r.pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		for partition, to := range []int64{1, 2} { // one record is a dead letter, several are a gap
			ok, err := speedlayer.Store{}.AcceptGap(t.Context(), tx, r.v.Ref, r.topic, int32(partition), job.Range{To: to}, "ann") //nolint:gosec // 0 or 1
			if err != nil || !ok {
				return fmt.Errorf("%d was not accepted: %w", partition, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.agent("a")
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"good","v":7}`)
	for n := range 3 {
		kafkatest.Until(t, "the record is read", func() bool { return len(r.served()) == 1 })
		if n == 1 {
			kafkatest.DeleteRecords(t, r.brokers, r.topic, 0, 1)
			kafkatest.DeleteRecords(t, r.brokers, r.topic, 1, 2)
		}
		r.run(ledger.Args{Full: true})
		if got := r.served(); len(got) != 1 || got[0] != "(good,1,7,7,7)" {
			t.Errorf("run %d: %v", n, got)
		}
	}
	live, err := generation.Ranges(t.Context(), r.pool, r.v.Ref, 3)
	if err != nil || missing(live, nil) != 3 {
		t.Errorf("the generation lacks %d offsets, %v", missing(live, nil), err)
	}
}

func TestManyGenerationsLeaveNothingBehind(t *testing.T) { // pitfall 22
	t.Parallel()
	r := newRig(t, sums, keep(1))
	r.agent("a")
	var pages []string
	for n := 1; n <= 12; n++ {
		r.produce(400)
		r.caughtUp()
		r.run(ledger.Args{})
		if n > 2 {
			r.dropped(n - 2)
			r.exec(`VACUUM public.sums__v1`)
			pages = append(pages, r.one(`SELECT pg_relation_size('public.sums__v1') / 8192`))
		}
	}
	r.equal("after 12 generations")
	if len(slices.Compact(slices.Clone(pages[2:]))) > 2 {
		t.Errorf("the speed layer grows: %v pages", pages)
	}
	kafkatest.Until(t, "the statistics of the batch table count the newest generation", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.generation WHERE generation = 12 AND timings ? 'analyze'`) == "1"
	})
	if n := r.one(`SELECT count(*) FROM pg_stats WHERE tablename = 'sums__v1_batch' AND inherited AND attname = 'k'`); n != "1" {
		t.Errorf("the batch table has statistics of %s columns k", n)
	}
	left := r.lines(`SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname LIKE 'sums\_\_v1%' ORDER BY 1`)
	if got := strings.Join(left, " "); got != "(sums__v1) (sums__v1_batch) (sums__v1_g11) (sums__v1_g12) (sums__v1_gen)" {
		t.Errorf("left: %s", got)
	}
	if n := r.one(`SELECT count(*) FROM kappactl.batch_segment`); n != "0" {
		t.Errorf("%s segments are left", n)
	}
}

// keyed is a test case: a job for one kind of rows, and the rows that it must serve.
type keyed struct {
	name, sql string
	key       []string
	want      func([]*kgo.Record) []string
}

// TestRowsAndLatestRowsGoThroughBothLayers: appended rows, and the latest row of each key with deletes, by full and incremental
// runs and after a rollback, equal one pass over the log.
func TestRowsAndLatestRowsGoThroughBothLayers(t *testing.T) {
	t.Parallel()
	for _, k := range []keyed{
		{"rows", `SELECT k, v FROM source WHERE v % 3 <> 0`, nil, appended},
		{"latest", `SELECT decode(_key) AS id, v FROM source`, []string{"id"}, newest},
	} {
		for _, every := range []time.Duration{0, 24 * time.Hour} {
			t.Run(fmt.Sprintf("%s, full every %s", k.name, every), func(t *testing.T) {
				t.Parallel()
				throughLayers(t, k, every)
			})
		}
	}
}

func throughLayers(t *testing.T, k keyed, every time.Duration) {
	r := newRig(t, k.sql, withBatch(func(b *job.Batch) { b.FullEvery = every }), func(s *job.Spec) { s.Serve.Key = k.key })
	r.agent("a")
	var all []*kgo.Record
	more := func(n int) {
		t.Helper()
		records := make([]*kgo.Record, n)
		for i := range records {
			at := len(all) + i
			id := (at * 7) % 23
			records[i] = &kgo.Record{Topic: r.topic, Partition: int32(id % 2), Key: fmt.Appendf(nil, "id-%d", id), //nolint:gosec // 0 or 1
				Value: fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, id, at)}
			if k.key != nil && at%5 == 4 {
				records[i].Value = nil
			}
		}
		all, r.next = append(all, records...), r.next+n
		kafkatest.ProduceRecords(t, r.brokers, records)
		r.caughtUp()
	}
	equal := func(when string) {
		t.Helper()
		want, got := k.want(all), r.served()
		slices.Sort(want)
		if !slices.Equal(want, got) {
			t.Fatalf("%s: %d rows are served, %d are right:\n%v\n%v", when, len(got), len(want), got, want)
		}
	}
	for n := range 4 {
		more(60 + n)
		r.run(ledger.Args{Full: n == 2})
		equal(fmt.Sprintf("after run %d", n+1))
		more(17)
		equal(fmt.Sprintf("behind run %d", n+1))
	}
	if a := r.ask(ledger.BatchRollback, ledger.Args{Generation: 3}); a.Code != job.ExitOK {
		t.Fatalf("rollback: exit %d, %s", a.Code, a.Text())
	}
	equal("after a rollback")
	more(31)
	r.run(ledger.Args{})
	equal("after the next run")
}

func appended(records []*kgo.Record) (out []string) {
	for i, rec := range records {
		if i%3 != 0 {
			out = append(out, fmt.Sprintf("(key-%s,%d)", strings.TrimPrefix(string(rec.Key), "id-"), i))
		}
	}
	return out
}

func newest(records []*kgo.Record) (out []string) {
	last := map[string]int{}
	for i, rec := range records {
		last[string(rec.Key)] = i
		if rec.Value == nil {
			delete(last, string(rec.Key))
		}
	}
	for id, i := range last {
		out = append(out, fmt.Sprintf("(%s,%d)", id, i))
	}
	return out
}

// TestAbortedRecordsAreInNoGeneration: ranges are contiguous, and offsets in them are not.
func TestAbortedRecordsAreInNoGeneration(t *testing.T) { // pitfall 13
	t.Parallel()
	r := newRig(t, sums, withBatch(func(b *job.Batch) { b.FullEvery = 24 * time.Hour }))
	r.agent("a")
	r.next = 100 // those before are less than 0
	for round := range 3 {
		for n := range 10 {
			partition := int32(n % 2) //nolint:gosec // 0 or 1
			if n%10 < 3 {
				kafkatest.Aborted(t, r.brokers, r.topic, partition, string(value(r.next)), `{"k":"aborted","v":1}`)
				continue
			}
			kafkatest.Committed(t, r.brokers, r.topic, partition, string(value(r.next)), string(value(r.next+1)))
			r.next += 2
		}
		if round == 1 {
			r.run(ledger.Args{}) // while they are read
		}
		kafkatest.Until(t, "the positions are at the ends", func() bool {
			a, _ := kafkatest.Ends(t, r.brokers, r.topic, 0)
			b, _ := kafkatest.Ends(t, r.brokers, r.topic, 1)
			return r.one(`SELECT sum(next) FROM kappactl.position`) == fmt.Sprint(a+b)
		})
		r.run(ledger.Args{Full: round == 2})
		r.equal(fmt.Sprintf("after round %d", round))
	}
}
