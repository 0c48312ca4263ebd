package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/s3test"
)

// archivedJob is a job whose topic is archived to a folder of the test.
func (w *world) archivedJob(topic string) string {
	w.t.Helper()
	return w.archivedAt("file://"+w.dir+"/archive", topic)
}

func (w *world) archivedAt(location, topic string) string {
	w.t.Helper()
	return w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)+fmt.Sprintf("archive: {location: %q, roll: {every: 1s, size: 1MB}}\n", location))
}

// inBucket lets all commands reach an S3 gateway, and returns a location there and the bucket's folder.
func (w *world) inBucket() (location, folder string) {
	w.t.Helper()
	g := s3test.Start(w.t)
	name, folder := g.Bucket(w.t)
	secret := w.file("s3.secret", s3test.Secret+"\n")
	w.vars = append(w.vars, "KAPPACTL_ARCHIVE_S3_ENDPOINT="+g.Endpoint, "KAPPACTL_ARCHIVE_S3_REGION="+s3test.Region,
		"KAPPACTL_ARCHIVE_S3_ACCESS_KEY_ID="+s3test.AccessKey, "KAPPACTL_ARCHIVE_S3_SECRET_ACCESS_KEY_FILE="+secret)
	return "s3://" + name + "/archives", folder
}

// archiveStatus is a partition as archive status prints it.
type archiveStatus struct {
	Partition  int32
	State      string
	Next       int64
	LastStable int64 `json:"last_stable"`
	Records    int64
}

// archivedUpTo waits until every partition is archived up to the end of its log.
func (w *world) archivedUpTo(topic string, records int64) {
	w.t.Helper()
	w.until("the topic is archived", func() bool {
		var found []archiveStatus
		w.into(&found, "archive", "status", topic)
		var sum int64
		for _, s := range found {
			sum += s.Records
			if s.State == string(archive.StateFault) {
				w.t.Fatalf("%+v", s)
			}
		}
		return sum >= records
	})
}

// verifiedArchive is what archive verify prints.
type verifiedArchive struct {
	OK       bool
	Files    int64
	Records  int64
	Findings []archive.Finding
	Orphans  []struct{ Name string }
}

// TestKilledArchiverPublishesEveryOffsetOnce kills the agent at every step of the archiver, also while it merges small files. The manifest is contiguous after each,
// and holds every record once in the end; what a killed agent left at the location is an orphan.
func TestKilledArchiverPublishesEveryOffsetOnce(t *testing.T) {
	t.Parallel()
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, kafkatest.Fake(t))
		killedArchiver(w, "file://"+w.dir+"/archive")
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, kafkatest.Fake(t))
		location, _ := w.inBucket()
		killedArchiver(w, location)
	})
}

func killedArchiver(w *world, location string) {
	t, brokers := w.t, w.brokers
	t.Helper()
	rounds := len(archive.FaultPoints())
	if soak {
		rounds = 100
	}
	const each = 2000
	topic := clicksTopic(t, brokers, each)
	first := w.serve()
	w.ok("deploy", w.archivedAt(location, topic))
	first.stop()
	produced := each
	produce := func(n int) {
		produceClicks(t, brokers, topic, produced, n)
		produced += n
	}
	for round := range rounds {
		point := archive.FaultPoints()[round%len(archive.FaultPoints())]
		produce(each)
		doomed := w.serve(fmt.Sprintf("KAPPACTL_FAULT=%s:%d", point, 1+round/len(archive.FaultPoints())%3))
		w.until("the agent is killed at "+point, func() bool {
			select {
			case <-doomed.done:
				return true
			default:
				if strings.HasPrefix(point, "archive.merge") { // it takes many small files
					produce(4)
				}
				return false
			}
		})
		var v verifiedArchive
		w.into(&v, "archive", "verify", topic)
		if !v.OK {
			t.Fatalf("after a kill at %s: %+v", point, v.Findings)
		}
	}
	w.serve()
	total := int64(produced)
	w.archivedUpTo(topic, total)
	var v verifiedArchive
	w.into(&v, "archive", "verify", topic, "--orphans")
	if !v.OK || v.Records != total {
		t.Errorf("%+v, want %d records", v, total)
	}
	if len(v.Orphans) == 0 {
		t.Error("no orphan: no agent was killed between storing a file and listing it")
	}
	var replaced int64
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.archive_replaced`).Scan(&replaced); err != nil || replaced == 0 {
		t.Errorf("%d files were merged, %v", replaced, err)
	}
}

// TestArchiveCommands: the commands by their exit codes, on an archive with a damaged and a missing file.
func TestArchiveCommands(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := clicksTopic(t, brokers, 2000)
	w.serve()
	file := w.archivedJob(topic)
	w.ok("deploy", file)
	w.archivedUpTo(topic, 2000)
	w.code(2, "archive", "resume", "--accept-gap", topic+"/0:1-2")
	w.ok("archive", "resume")
	w.ok("archive", "rebuild", topic)
	var status struct{ Archive []archiveStatus }
	w.into(&status, "status", "clicks")
	if len(status.Archive) != 4 || status.Archive[0].State != string(archive.StateArchiving) {
		t.Errorf("status shows %+v", status)
	}
	if text := w.ok("doctor"); !strings.Contains(text, "archive of "+topic) {
		t.Errorf("doctor does not show the archive:\n%s", text)
	}
	var typed struct{ Files, Records, Removed int64 }
	if w.into(&typed, "archive", "type", "clicks"); typed.Files == 0 || typed.Records != 2000 || typed.Removed != 0 {
		t.Errorf("archive type: %+v", typed)
	}
	var whole verifiedArchive
	if w.into(&whole, "archive", "verify", topic, "--orphans"); !whole.OK || len(whole.Orphans) > 0 {
		t.Errorf("with typed columns: %+v", whole)
	}
	w.code(2, "archive", "type", "clicks", "v9")
	if err := os.Rename(filepath.Join(w.dir, "archive"), filepath.Join(w.dir, "unmounted")); err != nil {
		t.Fatal(err)
	}
	if text := w.ok("doctor"); !strings.Contains(text, "has no marker") {
		t.Errorf("doctor does not miss the marker:\n%s", text)
	}
	if err := os.Rename(filepath.Join(w.dir, "unmounted"), filepath.Join(w.dir, "archive")); err != nil {
		t.Fatal(err)
	}

	other := w.file("other.yaml", fmt.Sprintf("job: other\nsource: {topics: [%s], columns: {page: integer}}\nquery: SELECT page, count(*) AS n FROM source GROUP BY page\n"+
		"serve: {view: public.other}\narchive: {location: \"file://%s/elsewhere\"}\n", topic, w.dir))
	w.code(6, "deploy", other)
	unplaced := w.file("unplaced.yaml", fmt.Sprintf("job: other\nsource: {topics: [%s], columns: {page: integer}}\nquery: SELECT page, count(*) AS n FROM source GROUP BY page\n"+
		"serve: {view: public.other}\narchive: {}\n", topic))
	w.code(2, "deploy", unplaced)
	w.vars = append(w.vars, "KAPPACTL_ARCHIVE_LOCATION=file://"+w.dir+"/archive")
	w.ok("deploy", unplaced)

	var files []struct{ Location, Name string }
	w.into(&files, "archive", "list", topic)
	if len(files) == 0 {
		t.Fatal("no files")
	}
	if err := os.Truncate(filepath.Join(w.dir, "archive", files[0].Name), 4); err != nil {
		t.Fatal(err)
	}
	var v verifiedArchive
	w.decode(&v, w.code(5, "archive", "verify", topic, "-o", "json").stdout)
	if len(v.Findings) != 1 || filepath.Base(v.Findings[0].File) != filepath.Base(files[0].Name) {
		t.Errorf("%+v", v)
	}
	w.code(2, "archive", "prune", "--before", "2100-01-01")
	w.ok("archive", "prune", topic, "--before", "2100-01-01", "--yes")
	w.into(&files, "archive", "list", topic)
	if len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
	if w.into(&v, "archive", "verify", topic, "--orphans"); !v.OK || len(v.Orphans) > 0 {
		t.Errorf("after prune: %+v", v)
	}
}
