package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestWhatPeopleDoToAnArchiveIsInTheHistory: every job that asks for the archive has who did it, and exactly what, once.
func TestWhatPeopleDoToAnArchiveIsInTheHistory(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := clicksTopic(t, brokers, 2000)
	agent := w.serve()
	w.ok("deploy", w.archivedJob(topic))
	w.ok("deploy", w.file("other.yaml", fmt.Sprintf("job: other\nsource: {topics: [%s], columns: {page: integer}}\n"+
		"query: SELECT page, count(*) AS n FROM source GROUP BY page\nserve: {view: public.other}\n"+
		"archive: {location: \"file://%s/archive\", roll: {every: 1s, size: 1MB}}\n", topic, w.dir)))
	w.archivedUpTo(topic, 2000)
	w.until("both jobs want the archive", func() bool {
		return w.sum(`SELECT coalesce(max(cardinality(wanted_by)), 0)::bigint FROM kappactl.archive`) == 2
	})
	agent.stop()

	w.exec(`UPDATE kappactl.archive_position SET fault = 'too_large', fault_detail = 'planted' WHERE partition IN (1, 2)`)
	w.ok("archive", "resume", topic)
	w.ok("archive", "resume", topic) // no fault is left: no event
	w.noted("archive_resumed", `"partitions": [1, 2]`)

	first := w.sum(`SELECT min(next) FROM kappactl.archive_position WHERE partition = 0`)
	gap := fmt.Sprintf("%s/0:%d-%d", topic, first, first+9)
	w.exec(`UPDATE kappactl.archive_position SET fault = 'gap', fault_from = next, fault_to = next + 9 WHERE partition = 0`)
	w.code(2, "archive", "resume", "--accept-gap", gap, "--accept-gap", topic+"/3:1-2")
	if n := w.sum(`SELECT count(*) FROM kappactl.event WHERE kind = 'archive_gap_accepted'`); n != 0 {
		t.Errorf("a refused command left %d events", n)
	}
	w.ok("archive", "resume", "--accept-gap", gap)
	w.code(2, "archive", "resume", "--accept-gap", gap)
	w.noted("archive_gap_accepted", fmt.Sprintf(`"from": %d`, first))
	if out := w.ok("history", "other"); !strings.Contains(out, gap) {
		t.Errorf("the history does not name %s:\n%s", gap, out)
	}

	w.exec(`DELETE FROM kappactl.archive_file WHERE partition = 3`)
	w.exec(`UPDATE kappactl.archive_position SET next = start_offset WHERE partition = 3`)
	w.ok("archive", "rebuild", topic)
	w.ok("archive", "rebuild", topic) // nothing is missing: no event
	w.noted("archive_rebuilt", `"partition": 3`)

	w.exec(`UPDATE kappactl.archive SET id = gen_random_uuid()`)
	w.code(6, "archive", "rebuild", topic)
	w.ok("archive", "rebuild", topic, "--adopt")
	w.noted("archive_adopted", `"topic": "`+topic+`"`)

	prune := []string{"archive", "prune", topic, "--before", "2100-01-01"}
	if out := w.code(6, append(prune, "--dry-run")...).stdout; !strings.Contains(out, "would_be_removed") {
		t.Errorf("the dry run does not list what would go:\n%s", out)
	}
	w.code(6, append(prune, "--yes")...)
	w.ok(append(prune, "--yes", "--force")...)
	w.noted("archive_pruned", `"before": "2100-01-01T00:00:00Z"`)
}

// noted checks that both jobs have one event of that kind, about the whole job, by a person, with a detail.
func (w *world) noted(kind, detail string) {
	w.t.Helper()
	const each = `SELECT count(DISTINCT job) FROM kappactl.event WHERE kind = '%s' AND number IS NULL AND by <> '' AND position('%s' IN detail::text) > 0`
	all := w.sum(fmt.Sprintf(`SELECT count(*) FROM kappactl.event WHERE kind = '%s'`, kind))
	if jobs := w.sum(fmt.Sprintf(each, kind, detail)); jobs != 2 || all != 2 {
		w.t.Errorf("%d events %s, of %d jobs with %s:\n%s", all, kind, jobs, detail, w.ok("history", "clicks", "-o", "json"))
	}
}
