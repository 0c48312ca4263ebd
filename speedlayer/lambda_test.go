package speedlayer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/serving"
)

func ofLambda(s *job.Spec) { s.Mode = job.Lambda }

// generations runs the batch side of a version by hand: it rotates, builds generations out of what is stored and shows them.
type generations struct {
	*rig
	ctx          context.Context
	newest, live int
	views        *serving.Store
}

// rotate begins the next epoch, as a run does.
func (g *generations) rotate() error {
	return g.pool.ReadCommitted(g.ctx, func(tx *pg.Tx) error {
		if err := lockVersion(g.ctx, tx, g.ref); err != nil {
			return err
		}
		if err := lockPositions(g.ctx, tx, g.ref); err != nil {
			return err
		}
		g.newest++
		args := refArgs(g.ref)
		args["epoch"] = g.newest
		_, err := tx.Exec(g.ctx, `UPDATE kappactl.position SET epoch = @epoch WHERE job = @job AND number = @number`, args)
		return err
	})
}

// build makes the newest generation of the live one and of the epochs from it up to the rotation.
func (g *generations) build() error {
	v := at(g.ref, g.layout)
	for _, step := range []func(context.Context, pg.DB, job.Version, int) error{g.views.CreateMember, g.views.IndexMember} {
		if err := step(g.ctx, g.pool, v, g.newest); err != nil {
			return err
		}
	}
	columns := stagedColumns(v.Layout)
	list := strings.Join(columns, ", ")
	_, err := g.pool.Exec(g.ctx, fmt.Sprintf(`WITH below AS (SELECT %[1]s FROM %[2]s UNION ALL SELECT %[1]s FROM %[3]s WHERE _epoch >= %[4]d AND _epoch < %[5]d)
		INSERT INTO %[6]s (%[1]s) %[7]s`, list, pg.Ident(v.Schema, v.Member(g.live)), pg.Ident(v.Schema, v.Table()), g.live, g.newest,
		pg.Ident(v.Schema, v.Member(g.newest)), filled(v.Layout, columns, "below")))
	if err != nil {
		return err
	}
	return g.views.Attach(g.ctx, g.pool, v, g.newest)
}

func (g *generations) show(generation int) error {
	tag, err := g.pool.Exec(g.ctx, fmt.Sprintf("UPDATE %s SET generation = %d WHERE generation = %d",
		pg.Ident("public", g.ref.Pointer()), generation, g.live))
	if err != nil || tag.RowsAffected() != 1 {
		return fmt.Errorf("show generation %d: %d rows, %w", generation, tag.RowsAffected(), err)
	}
	g.live = generation
	return nil
}

// run rotates and flips until ctx ends: two of three rotations come to nothing, and each generation that is shown is left for the one
// before and shown again. It returns how often readers were shown another generation.
func (g *generations) run(ctx context.Context) (flips int, err error) {
	for ctx.Err() == nil {
		for range 3 {
			if err := g.rotate(); err != nil {
				return flips, err
			}
		}
		if err := g.build(); err != nil {
			return flips, err
		}
		before, built := g.live, g.newest
		for range 25 {
			for _, to := range []int{built, before, built} {
				if to == g.live {
					continue
				}
				if err := g.show(to); err != nil {
					return flips, err
				}
				flips++
			}
			if err := g.rotate(); err != nil {
				return flips, err
			}
		}
		// No generation that is kept needs the rows of older epochs.
		if _, err := g.pool.Exec(g.ctx, fmt.Sprintf("DELETE FROM %s WHERE _epoch < %d", pg.Ident("public", g.ref.Table()), before)); err != nil {
			return flips, err
		}
	}
	return flips, nil
}

// layers follows the topic with batches of these many records, each of an epoch of its own, and compares what is served; then it makes a
// generation of all but the last epoch, and one of everything, and compares again.
func (r *rig) layers(size int, want []string) {
	r.t.Helper()
	g := &generations{rig: r, ctx: r.t.Context(), views: serving.New(serving.Config{})}
	var lock sync.Mutex
	r.agent("a", func(e *Engine) {
		e.most = size
		e.at = func(at string) {
			if at == faultpoint.LiveAfterCommit {
				lock.Lock()
				defer lock.Unlock()
				// A commit may still come when the test has ended and its context with it.
				if err := g.rotate(); err != nil && g.ctx.Err() == nil {
					r.t.Error(err)
				}
			}
		}
	})
	same := func(what string) {
		if diff := cmp.Diff(want, r.served()); diff != "" {
			r.t.Errorf("%s, %d epochs: %s", what, g.newest, diff)
		}
	}
	r.caughtUp()
	lock.Lock()
	defer lock.Unlock()
	same("generation 0")
	last := g.newest
	for _, built := range []int{max(1, last-1), last + 1} {
		g.newest = built
		if err := g.build(); err != nil {
			r.t.Fatal(err)
		}
		if err := g.show(built); err != nil {
			r.t.Fatal(err)
		}
		same(fmt.Sprintf("generation %d", built))
	}
}

// sighting is what a reader saw in one snapshot.
type sighting struct {
	how   string
	below map[int32]int64
	rows  []string
}

// read reads positions and rows in one snapshot: of one statement, or of one transaction of several.
func (r *rig) read(ctx context.Context, repeatable bool) (s sighting, err error) {
	s.how = "READ COMMITTED"
	const sqlNexts = "SELECT jsonb_object_agg(partition::text, next) FROM kappactl.position"
	rows := "SELECT coalesce(array_agg(q::text ORDER BY 1), '{}') FROM (" + serving.New(serving.Config{}).Select(at(r.ref, r.layout)) + ") AS q"
	var nexts []byte
	if !repeatable {
		err = r.pool.QueryRow(ctx, fmt.Sprintf("SELECT (%s), (%s)", sqlNexts, rows)).Scan(&nexts, &s.rows)
	} else {
		s.how = "REPEATABLE READ"
		err = r.pool.Snapshot(ctx, func(tx *pg.Tx) error {
			if err := tx.QueryRow(ctx, sqlNexts).Scan(&nexts); err != nil {
				return err
			}
			return tx.QueryRow(ctx, rows).Scan(&s.rows)
		})
	}
	if err != nil {
		return s, err
	}
	slices.Sort(s.rows)
	return s, json.Unmarshal(nexts, &s.below)
}

// produceOn appends records to partitions in turn until ctx ends; one of 20 is none that can be processed.
func (r *rig) produceOn(ctx context.Context, partitions func() int32) {
	for i := 300; ctx.Err() == nil; {
		records := make([]*kgo.Record, 40)
		for n := range records {
			records[n] = &kgo.Record{Topic: r.topic, Partition: int32(i) % partitions(), Value: value(i)}
			if i%20 == 19 {
				records[n].Value = []byte("none")
			}
			i++
		}
		kafkatest.ProduceRecords(r.t, r.brokers, records)
		_ = retry.Sleep(ctx, 10*time.Millisecond)
	}
}

// TestTheMergedViewIsOnePassAtEveryInstant: four writers commit records and dead letters, partitions are added, generations are begun
// every few milliseconds, and shown, left and shown again meanwhile. Whatever a reader sees is one naive pass over the records below
// the positions of the same snapshot.
func TestTheMergedViewIsOnePassAtEveryInstant(t *testing.T) { // pitfalls 1, 2, 5, 7, 12, 17 and 24
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 4, sums, ofLambda)
	for p := range int32(4) {
		r.produce(p, 200, 50)
	}
	r.startReplay(20)
	r.agents.Store(4)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.agent(name, nil)
	}
	r.build()
	r.equal()
	ctx, end := context.WithTimeout(t.Context(), 6*time.Second)
	defer end()
	admin := kadm.NewClient(kafkatest.Client(t, r.brokers))
	var work sync.WaitGroup
	var lock sync.Mutex
	var samples []sighting
	partitions := int32(4)
	count := func() int32 { lock.Lock(); defer lock.Unlock(); return partitions }
	work.Go(func() { r.produceOn(ctx, count) })
	work.Go(func() { // partitions are added under load
		for n := 5; n <= 7 && retry.Sleep(ctx, time.Second) == nil; n++ {
			if _, err := admin.UpdatePartitions(t.Context(), n, r.topic); err != nil {
				t.Error(err)
				return
			}
			f := r.frozen(0)[n-1]
			f.To = f.From
			inTx(t, r.pool, func(tx *pg.Tx) error { return Store{}.Follow(t.Context(), tx, r.ref, f) })
			lock.Lock()
			partitions = int32(n)
			lock.Unlock()
		}
	})
	for _, repeatable := range []bool{false, true} {
		work.Go(func() {
			for ctx.Err() == nil {
				s, err := r.read(t.Context(), repeatable)
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				samples = append(samples, s)
				lock.Unlock()
			}
		})
	}
	g := &generations{rig: r, ctx: t.Context(), views: serving.New(serving.Config{})}
	flips, err := g.run(ctx)
	if err != nil {
		t.Error(err)
	}
	work.Wait()
	r.caughtUp()
	r.equal()
	records := r.committed()
	for _, s := range samples {
		if diff := cmp.Diff(onePass(records, s.below), s.rows); diff != "" {
			t.Fatalf("a reader in %s saw (+), the naive pass below its positions is (-):\n%s", s.how, diff)
		}
	}
	letters := r.one("SELECT count(*) FROM kappactl.dead_letter")
	t.Logf("%d records, %d dead letters, %d epochs, %d flips, %d reads", len(records), letters, g.newest, flips, len(samples))
	if flips < 20 || len(samples) < 20 || letters < 10 || r.one("SELECT count(DISTINCT epoch) FROM kappactl.position") != 1 {
		t.Error("too little happened: this test proves nothing")
	}
}

// TestACommitOverTwoEpochsStops: rows of one version that have several epochs cannot be; a commit that meets them writes nothing.
func TestACommitOverTwoEpochsStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums, ofLambda)
	r.startLive()
	exec(t, r.pool, `UPDATE kappactl.position SET epoch = 1 WHERE partition = 1`, pgx.NamedArgs{})
	r.produce(0, 0, 10)
	r.produce(1, 0, 10)
	r.agent("a", nil)
	kafkatest.Until(t, "a partition has a fault", func() bool {
		return r.one("SELECT count(*) FROM kappactl.position WHERE fault = 'epochs' AND fault_detail LIKE '%epochs%'") > 0
	})
}

// TestAnAddedPartitionTakesTheEpochOfTheOthers: it waits for a rotation that is under way.
func TestAnAddedPartitionTakesTheEpochOfTheOthers(t *testing.T) { // pitfall 12
	t.Parallel()
	l := counts()
	l.Lambda = true
	pool, ref := fresh(t, l, job.Live)
	follow := func(partition int32) {
		inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Follow(t.Context(), tx, ref, frozen(1, partition, 0, 0, 0)) })
	}
	follow(0)
	done := make(chan struct{})
	inTx(t, pool, func(tx *pg.Tx) error {
		if err := lockVersion(t.Context(), tx, ref); err != nil {
			return err
		}
		go func() {
			defer close(done)
			follow(1)
		}()
		kafkatest.Until(t, "the addition waits", func() bool {
			return lines(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)[0] == "(1)"
		})
		_, err := tx.Exec(t.Context(), `UPDATE kappactl.position SET epoch = 7`)
		return err
	})
	<-done
	if got := lines(t, pool, "SELECT epoch, count(*) FROM kappactl.position GROUP BY epoch"); len(got) != 1 || got[0] != "(7,2)" {
		t.Errorf("epochs %v", got)
	}
}
