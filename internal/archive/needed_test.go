package archive_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/archive"
)

// Of the versions whose positions are behind what is pruned only those count that read it: batch runs from where the version covers the
// partition, replays from their first segment that is not done.
func TestPruneNamesTheVersionsThatReadWhatGoes(t *testing.T) {
	t.Parallel()
	p := publish(t, 3) // up to offset 30
	version := func(name, phase, spec string, coversFrom, next int64, open ...int64) {
		t.Helper()
		for _, sql := range []string{
			`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ($1, 'public', $1)`,
			`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase)
				SELECT j.name, 1, 'x', '` + spec + `', '{}', 1, 'test', '` + phase + `' FROM kappactl.job j WHERE j.name = $1`,
		} {
			if _, err := p.pool.Exec(t.Context(), sql, name); err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.pool.Exec(t.Context(), `INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end)
			VALUES ($1, 1, $2::uuid, $3, $4, $5, $6, 30)`, name, orders.TopicID.String(), orders.Topic, orders.ID, next, coversFrom)
		if err != nil {
			t.Fatal(err)
		}
		for i, from := range append([]int64{0}, open...) {
			_, err := p.pool.Exec(t.Context(), `INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, state)
				VALUES ($1, 1, $2::uuid, $3, $4, $5::bigint, $5::bigint + 1, CASE WHEN $6 THEN 'done' ELSE 'open' END)`,
				name, orders.TopicID.String(), orders.Topic, orders.ID, from, i == 0)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	version("behind", "live", `{}`, 0, 12)
	version("done", "live", `{}`, 0, 20)
	version("ending", "retiring", `{}`, 0, 3)
	version("lambda", "live", `{"mode": "lambda"}`, 5, 30)
	version("late", "live", `{"mode": "lambda"}`, 20, 30)
	version("log", "live", `{"replay": {"source": "log"}}`, 0, 3)
	version("replays", "replaying", `{}`, 0, 30, 18, 25)
	plan, err := p.store.Prunable(t.Context(), p.pool, p.status(), minute(20).Add(-time.Second))
	if err != nil || plan.To != 20 {
		t.Fatal(plan, err)
	}
	got, err := p.store.Needed(t.Context(), p.pool, []archive.Prune{plan})
	if err != nil {
		t.Fatal(err)
	}
	need := func(job string, from int64) archive.Need {
		return archive.Need{Job: job, Version: 1, Topic: "orders", Partition: 7, From: from}
	}
	if diff := cmp.Diff([]archive.Need{need("behind", 12), need("lambda", 5), need("replays", 18)}, got); diff != "" {
		t.Error(diff)
	}
}
