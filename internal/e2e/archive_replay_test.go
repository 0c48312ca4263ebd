package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestReplayFromArchiveAndLog: retention deletes half of a log that is archived. A deploy builds the whole history all the same, with
// an agent that is killed in a segment that begins in the archive and ends in the log; verify finds it equal. Without the archive it
// is refused, and a damaged file stops it and is named.
func TestReplayFromArchiveAndLog(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	const all, late = 8000, 400
	topic := clicksTopic(t, brokers, all)
	first := w.serve()
	w.ok("deploy", w.archivedJob(topic))
	w.archivedUpTo(topic, all)
	w.ok("verify", "clicks")
	first.stop()
	for p := range int32(4) {
		kafkatest.DeleteRecords(t, brokers, topic, p, all/8)
	}
	produceClicks(t, brokers, topic, all, late)
	changed := strings.Replace(fmt.Sprintf(clicksJob, topic, -1), "WHERE page", "WHERE 0 + page", 1) // the same rows
	archive := fmt.Sprintf("archive: {location: \"file://%s/archive\"}\n", w.dir)

	gone := w.file("log.yaml", changed+archive+"replay: {source: log}\n")
	doomed := w.serve("KAPPACTL_FAULT=segment.reading:2")
	if o := w.code(7, "deploy", gone); !strings.Contains(o.stderr, "--accept-shorter-history") {
		t.Error(o.stderr)
	}
	whole := w.file("auto.yaml", changed+archive)
	var plan struct {
		Replay struct {
			Offsets  int64
			Archived int64 `json:"archived_offsets"`
		}
	}
	w.into(&plan, "plan", whole)
	if plan.Replay.Offsets != all+late || plan.Replay.Archived < all || plan.Replay.Archived > all+late {
		t.Errorf("plan: %+v", plan)
	}
	w.run("deploy", whole, "--detach")
	<-doomed.done
	second := w.serve()
	w.ok("deploy", whole)
	w.ok("promote", "clicks", "v3")
	w.until("all is served", func() bool {
		return w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly") == all+late
	})
	w.ok("verify", "clicks")
	w.ok("verify", "clicks", "--from", "archive")
	if o := w.code(7, "verify", "clicks", "--from", "log"); !strings.Contains(o.stderr, "is gone") {
		t.Error(o.stderr)
	}
	second.stop() // its copies of the files are whole
	w.serve()
	w.damagedReplay(topic, changed+archive)
}

// damagedReplay deploys over an archive of which one file is cut off.
func (w *world) damagedReplay(topic, job string) {
	w.t.Helper()
	var files []struct{ Name string }
	w.into(&files, "archive", "list", topic)
	if err := os.Truncate(filepath.Join(w.dir, "archive", files[0].Name), 4); err != nil {
		w.t.Fatal(err)
	}
	file := w.file("damaged.yaml", strings.Replace(job, "WHERE 0 + page", "WHERE 1 + page", 1))
	if o := w.code(7, "deploy", file); !strings.Contains(o.stderr, filepath.Base(files[0].Name)) {
		w.t.Error(o.stderr)
	}
	if o := w.code(7, "verify", "clicks"); !strings.Contains(o.stderr, filepath.Base(files[0].Name)) {
		w.t.Error(o.stderr)
	}
}

// TestReplayFromTheArchiveAlone: source: archive builds what the archive holds and follows the rest in the log.
func TestReplayFromTheArchiveAlone(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	const all = 4000
	topic := clicksTopic(t, brokers, all)
	w.serve()
	w.ok("deploy", w.archivedJob(topic))
	w.archivedUpTo(topic, all)
	for p := range int32(4) {
		kafkatest.DeleteRecords(t, brokers, topic, p, all/4)
	}
	produceClicks(t, brokers, topic, all, 100)
	w.ok("deploy", w.file("alone.yaml", fmt.Sprintf(clicksJob, topic, 0)+
		fmt.Sprintf("archive: {location: \"file://%s/archive\", roll: {every: 1h}}\nreplay: {source: archive}\n", w.dir)))
	w.ok("promote", "clicks", "v2")
	w.until("all is served", func() bool { return w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly") == all+100 })
	var status struct{ Live *string }
	if err := json.Unmarshal([]byte(w.ok("status", "clicks", "-o", "json")), &status); err != nil || status.Live == nil || *status.Live != "v2" {
		t.Errorf("live: %+v, %v", status.Live, err)
	}
}
