package e2e_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/certtest"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/s3test"
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

// TestABucketByHostWithAPrivateCA: requests name the bucket in the host, and the roots of the settings vouch for the endpoint.
func TestABucketByHostWithAPrivateCA(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	location, _ := w.inBucket()
	files := certtest.Make(t, "client", s3test.Domain, "*."+s3test.Domain)
	certificate, err := tls.LoadX509KeyPair(files.ServerCert, files.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	var asked sync.Map
	proxy := s3test.HostStyle(t, s3test.Start(t), certificate, func(name string) { asked.Store(name, true) })
	w.vars = append(w.vars, "HTTPS_PROXY="+proxy, "NO_PROXY=127.0.0.1", "KAPPACTL_ARCHIVE_S3_ENDPOINT=https://"+s3test.Domain,
		"KAPPACTL_ARCHIVE_S3_ADDRESSING=host", "KAPPACTL_ARCHIVE_LOCATION="+location)
	for text, more := range map[string]string{
		"set archive.s3.ca_file":        "KAPPACTL_ARCHIVE_S3_CA_FILE=" + files.OtherCA,
		"is not trusted":                "NONE=",
		"archive.s3.ca_file: ":          "KAPPACTL_ARCHIVE_S3_CA_FILE=" + filepath.Join(w.dir, "none.pem"),
		"holds no certificate in PEM f": "KAPPACTL_ARCHIVE_S3_CA_FILE=" + files.ServerKey,
	} {
		right := w.vars
		w.vars = slices.Concat(right, []string{more})
		if got := w.run("doctor"); !strings.Contains(got.stdout, text) {
			t.Errorf("doctor with %s, want %q:\n%s%s", more, text, got.stdout, got.stderr)
		}
		w.vars = right
	}
	w.vars = append(w.vars, "KAPPACTL_ARCHIVE_S3_CA_FILE="+files.CA)
	topic := clicksTopic(t, brokers, 500)
	w.serve()
	if text := w.run("doctor").stdout; !strings.Contains(text, "archive.location\tok\t"+location) {
		t.Errorf("doctor does not show the location:\n%s", text)
	}
	w.ok("deploy", w.archivedAt(location, topic))
	w.archivedUpTo(topic, 500)
	var v verifiedArchive
	if w.into(&v, "archive", "verify", topic, "--orphans"); !v.OK || v.Records != 500 || len(v.Orphans) > 0 {
		t.Errorf("%+v", v)
	}
	bucket := strings.Split(strings.TrimPrefix(location, "s3://"), "/")[0]
	if _, ok := asked.Load(bucket + "." + s3test.Domain + ":443"); !ok {
		t.Error("no request named the bucket in its host")
	}
}

// TestLiveVersionsGoOnWithoutTheirBucket: a bucket that fails in every way stops the archive, and nothing else.
func TestLiveVersionsGoOnWithoutTheirBucket(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	location, _ := w.inBucket()
	proxy := s3test.NewProxy(t, s3test.Start(t))
	w.vars = append(w.vars, "KAPPACTL_ARCHIVE_S3_ENDPOINT="+proxy.Endpoint)
	topic := clicksTopic(t, brokers, 500)
	w.serve()
	w.ok("deploy", w.archivedAt(location, topic), "--promote", "auto")
	w.archivedUpTo(topic, 500)
	views := func() (n int) {
		if err := w.pool.QueryRow(t.Context(), `SELECT coalesce(sum(clicks), 0)::integer FROM public.clicks_hourly`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.until("the version is live", func() bool { return views() == 500 })

	var requests atomic.Int64
	faults := []s3test.Fault{s3test.Drop, s3test.Busy, s3test.Hang, s3test.Break}
	proxy.Judge(func(*http.Request) s3test.Fault { return faults[requests.Add(1)%int64(len(faults))] })
	produceClicks(t, brokers, topic, 500, 300)
	w.until("the view has the new records", func() bool { return views() == 800 })
	var status struct {
		Versions []struct{ Phase, Verdict string }
	}
	w.into(&status, "status", "clicks")
	if len(status.Versions) != 1 || status.Versions[0].Phase != "live" || status.Versions[0].Verdict == "unhealthy" {
		t.Errorf("%+v", status)
	}
	proxy.Judge(func(*http.Request) s3test.Fault { return s3test.Pass })
	w.archivedUpTo(topic, 800)
	var v verifiedArchive
	if w.into(&v, "archive", "verify", topic); !v.OK || v.Records != 800 {
		t.Errorf("%+v", v)
	}
}
