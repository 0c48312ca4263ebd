package reprocess_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// TestWhatDoesNotChangeOfALiveVersionIsNotWritten: its rows were written at every tick, with what they held already.
func TestWhatDoesNotChangeOfALiveVersionIsNotWritten(t *testing.T) {
	w := newWorld(t, 1000, 2000)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	read := func(sql string) (out string) {
		t.Helper()
		if err := w.pool.QueryRow(t.Context(), sql).Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const row, age = `SELECT xmin::text FROM kappactl.version`, `SELECT extract(epoch FROM clock_timestamp() - min(sampled_at))::text FROM kappactl.observation`
	w.await("the version is ready", func() bool { return read(`SELECT verdict FROM kappactl.version`) == "ready" })
	before, began := read(row), time.Now()
	kept := 0
	for last := ""; time.Since(began) < 50*w.config.Tick; {
		if now := read(`SELECT min(sampled_at)::text FROM kappactl.observation`); now != last {
			last = now
			kept++
		}
	}
	if after := read(row); after != before {
		t.Error("the row of the version was written although nothing changed")
	}
	if kept < 1 || kept > 40 {
		t.Errorf("in 50 ticks the samples were noted %d times as taken", kept)
	}
	w.sql(`TRUNCATE kappactl.observation`)
	w.await("samples that somebody deleted are there again", func() bool { return read(`SELECT count(*)::text FROM kappactl.observation`) == "2" })
	// And what changes shows.
	w.setIdle(1, true)
	w.brokers.produce(0, 500)
	w.await("the lag shows", func() bool { return read(`SELECT sum(lag_records)::text FROM kappactl.observation`) == "500" })
	w.setIdle(1, false)
	w.await("it is read", func() bool { return read(`SELECT sum(lag_records)::text FROM kappactl.observation`) == "0" })
}
