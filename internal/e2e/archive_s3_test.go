package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestArchiveInABucket: what people see of settings that are wrong, and a replay from the bucket that meets a damaged object.
func TestArchiveInABucket(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	location, folder := w.inBucket()
	topic := clicksTopic(t, brokers, 2000)
	w.serve()
	job := w.archivedAt(location, topic)
	w.ok("deploy", job)
	w.archivedUpTo(topic, 2000)
	w.archivedEnds(topic)

	if text := w.ok("doctor"); !strings.Contains(text, location) {
		t.Errorf("doctor does not show the archive:\n%s", text)
	}
	right := w.vars
	for text, wrong := range map[string]string{
		"the secret does not belong to the access key": "KAPPACTL_ARCHIVE_S3_SECRET_ACCESS_KEY=hunter2",
		"does not answer":                   "KAPPACTL_ARCHIVE_S3_ENDPOINT=http://127.0.0.1:1",
		"archive.s3.region is eu-9":         "KAPPACTL_ARCHIVE_S3_REGION=eu-9",
		"there is no bucket no-such-bucket": "KAPPACTL_ARCHIVE_LOCATION=s3://no-such-bucket",
	} {
		w.vars = slices.Concat(right, []string{wrong})
		if got := w.run("doctor"); !strings.Contains(got.stdout, text) || strings.Contains(got.stdout+got.stderr, "hunter2") {
			t.Errorf("doctor with %s:\n%s%s", wrong, got.stdout, got.stderr)
		}
		if strings.Contains(wrong, "LOCATION") {
			continue
		}
		if got := w.code(11, "archive", "verify", topic); !strings.Contains(got.stderr, text) {
			t.Errorf("archive verify with %s:\n%s", wrong, got.stderr)
		}
	}
	w.vars = right

	var files []struct{ Name string }
	w.into(&files, "archive", "list", topic)
	if err := os.WriteFile(filepath.Join(folder, "archives", files[0].Name), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	var v verifiedArchive
	w.decode(&v, w.code(5, "archive", "verify", topic, "-o", "json").stdout)
	if len(v.Findings) != 1 || !strings.HasSuffix(v.Findings[0].File, files[0].Name) {
		t.Errorf("%+v", v)
	}
	w.ok("archive", "prune", topic, "--before", "2100-01-01", "--yes")
	left, err := filepath.Glob(filepath.Join(folder, "archives", "*", "*", "*", "*.parquet"))
	if err != nil || len(left) > 0 {
		t.Errorf("prune left %q, %v", left, err)
	}
}

// archivedEnds waits until no partition of a topic is behind.
func (w *world) archivedEnds(topic string) {
	w.t.Helper()
	w.until("nothing waits to be archived", func() bool {
		var found []archiveStatus
		w.into(&found, "archive", "status", topic)
		for _, s := range found {
			if s.State != string(archive.StateArchiving) || s.Next < s.LastStable {
				return false
			}
		}
		return true
	})
}
