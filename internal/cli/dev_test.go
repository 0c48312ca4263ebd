package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

var readyLine = regexp.MustCompile(`^ready config=(\S+) brokers=(\S+) dsn=(\S+) http=(\S+)\n$`)

// ready starts dev on a folder and returns what its line says.
func (f *flow) ready(folder string) (config, http string) {
	f.t.Helper()
	f.start("dev", "--data", folder)
	f.out.await(f.t, "\n")
	m := readyLine.FindStringSubmatch(f.out.String())
	if m == nil || strings.Contains(m[3], "password") {
		f.t.Fatalf("not the line that scripts rely on: %q", f.out)
	}
	return m[1], m[4]
}

func TestDevBringsEverythingUpAgainOnTheSameFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "dev")
	t.Cleanup(func() { // as root the cluster lives elsewhere
		if err := devstack.Remove(folder); err != nil {
			t.Error(err)
		}
	})
	dev, user := &flow{t: t}, &flow{t: t}
	config, address := dev.ready(folder)
	if want := filepath.Join(folder, "kappactl.yaml"); config != want {
		t.Errorf("config=%s, want %s", config, want)
	}
	user.config = []string{"--config", config}

	data := filepath.Join(t.TempDir(), "views.ndjson")
	if err := os.WriteFile(data, []byte(`{"user_id":"u1","url":"/a","ts":"2026-01-01T10:05:00Z","duration_ms":5}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	user.does("dev", "load", data, "--topic", "pageviews")
	user.does("deploy", pageviews())
	if status, body := get(t, address, "/metrics"); status != 200 || !strings.Contains(body, `kappactl_phase{job="pageviews",phase="live",version="v1"} 1`) {
		t.Errorf("metrics: %d %s", status, body)
	}
	kafkatest.Until(t, "the metrics tell the lag of each partition", func() bool {
		_, body := get(t, address, "/metrics")
		for p := range 4 {
			if !strings.Contains(body, fmt.Sprintf(`kappactl_partition_lag_records{job="pageviews",partition="%d",topic="pageviews",version="v1"} 0`, p)) {
				return false
			}
		}
		return true
	})
	dev.stop(errInterrupted)
	dev.ends(job.ExitOK)

	again, _ := dev.ready(folder)
	if again != config {
		t.Errorf("the config moved from %s to %s", config, again)
	}
	user.does("dev", "load", data, "--topic", "pageviews")
	if out := user.does("deploy", pageviews()); !strings.Contains(out, "nothing to do") {
		t.Errorf("deploy after the restart: %s", out)
	}
	kafkatest.Until(t, "the live version has read what came after the restart", func() bool {
		return strings.Contains(user.does("status", "pageviews", "-o", "json"), `"records": 2,`)
	})
	user.does("verify", "pageviews")
	dev.stop(errInterrupted)
	dev.ends(job.ExitOK)
}

// does runs a command that has to succeed and returns its output.
func (f *flow) does(args ...string) string {
	f.t.Helper()
	f.start(args...)
	f.ends(job.ExitOK)
	return f.out.String()
}

func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	answer, err := http.Get("http://" + address + path) //nolint:noctx // a test on the loopback
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestServeSaysThatItIsReadyAndDrainsWhenToldToStop(t *testing.T) {
	t.Parallel()
	_, dsn := pgtest.New(t)
	settings := []string{"--dsn", dsn, "--brokers", strings.Join(kafkatest.Fake(t), ",")}
	agent, user := &flow{t: t, config: settings}, &flow{t: t, config: settings}
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte("contexts: {here: {}}\nagent: {lease: 2s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent.start("serve", "--http", "127.0.0.1:0", "--log", "json", "--config", file)
	agent.errs.await(t, `"msg":"agent works"`)
	address := regexp.MustCompile(`"http":"([^"]+)"`).FindStringSubmatch(agent.errs.String())
	if status, body := get(t, address[1], "/readyz"); status != 200 {
		t.Errorf("readyz: %d %s", status, body)
	}
	other := &flow{t: t, config: settings}
	other.start("serve", "--http", address[1])
	other.ends(job.ExitUsage)
	user.start("status")
	user.ends(job.ExitOK)
	agent.stop(errInterrupted)
	agent.ends(job.ExitOK)
	user.start("deploy", pageviews())
	user.ends(job.ExitUnreachable) // it took its heartbeat away
	if agent.out.String() != "" {
		t.Errorf("stdout: %s", agent.out)
	}
}
