package e2e_test

import (
	"fmt"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestFlightsAsLambda: archived, with a scheduled batch and the speed layer on top, the view is one pass over all that is
// committed at every moment while records arrive, history that the topic no longer has included. compare then runs the same
// job as kappa and as lambda, and leaves nothing behind.
func TestFlightsAsLambda(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	limit, partitions := 8_000, 2
	if soak {
		limit = 1_000_000
	}
	w, oracle := newWorld(t, brokers), newFlightsOracle(t, limit)
	w.serve()
	topic := kafkatest.Name("flights")
	load := []string{"dev", "load", oracle.file, "--topic", topic, "--partitions", fmt.Sprint(partitions), "--limit", fmt.Sprint(limit)}
	w.ok(load...)
	w.ok("deploy", w.file("flights.yaml", "mode: lambda\n"+fmt.Sprintf(flightsJob, topic, "")+
		fmt.Sprintf("archive: {location: \"file://%s/archive\", roll: {every: 1s}}\nbatch: {schedule: '@every 2s'}\n", w.dir)))
	w.until("the archive holds the topic", func() bool {
		return w.sum("SELECT coalesce(sum(records), 0)::bigint FROM kappactl.archive_file") == int64(limit)
	})
	for p := range partitions {
		end, _ := kafkatest.Ends(t, brokers, topic, int32(p)) //nolint:gosec // few
		kafkatest.DeleteRecords(t, brokers, topic, int32(p), end/2)
	}

	// Every offset is a flight: one statement sees as many of them as the positions of its snapshot have passed.
	stop := w.keepReading(`SELECT count(*), CASE WHEN sum(flights) = (SELECT sum(next) FROM kappactl.position WHERE job = 'flights') THEN 1 END
		FROM flights_daily`)
	w.ok(append(load, "--rate", fmt.Sprintf("%d/s", limit/4))...)
	w.until("all is served, and two scheduled generations have history and speed layer in one", func() bool {
		return w.sum("SELECT sum(flights)::bigint FROM flights_daily") == int64(2*limit) &&
			w.sum("SELECT count(*) FROM kappactl.generation WHERE generation > 0 AND live_at IS NOT NULL") >= 2
	})
	if stop() == 0 {
		t.Error("nobody read")
	}
	w.ok("schedule", "pause", "flights")
	w.sees(dailyView, oracle.query(`concat_ws('|', origin, date_trunc('day', date)::DATE, 2 * count(*), 2 * sum(delay))`, ""))
	w.equal("flights")
	if failed := w.sum("SELECT count(*) FROM kappactl.generation WHERE state = 'failed'"); failed != 0 {
		t.Errorf("%d runs failed", failed)
	}

	var found struct {
		Records int64
		Ways    map[string][]struct {
			Equal   bool
			Rows    int64
			Batch   *float64 `json:"batch_seconds"`
			Archive *int64   `json:"archive_bytes"`
		}
	}
	w.into(&found, "compare", "flights", "--rounds", "1", "--watch", "1s", "--dir", w.dir)
	for _, way := range []string{"kappa_log", "kappa_archive", "lambda"} {
		rounds := found.Ways[way]
		if len(rounds) != 1 || !rounds[0].Equal || rounds[0].Rows == 0 || (way == "lambda") != (rounds[0].Batch != nil) {
			t.Errorf("%s: %+v", way, rounds)
		}
	}
	if left := w.sum("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'kappactl_compare%'"); left != 0 {
		t.Errorf("%d schemas are left", left)
	}
}
