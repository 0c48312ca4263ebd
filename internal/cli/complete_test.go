package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestCompletionIsSilentAndQuickWithoutADatabase(t *testing.T) {
	for _, dsn := range []string{"host=127.0.0.1 port=1 user=u dbname=d", "host=192.0.2.1 port=5432 user=u dbname=d", "no dsn at all"} {
		began := time.Now()
		code, out, _ := runCLI(t, "__complete", "status", "--dsn", dsn, "")
		if code != 0 || strings.TrimSpace(out) != ":4" {
			t.Errorf("%s: exit %d: %q", dsn, code, out)
		}
		if took := time.Since(began); took > 4*time.Second { // what a connection may take without a bound of its own is 5 s
			t.Errorf("%s: took %s", dsn, took)
		}
	}
}

func TestContextsTopicsAndChoicesAreCompleted(t *testing.T) {
	brokers := kafkatest.Fake(t)
	kafkatest.CreateTopic(t, brokers, "visits", 1, nil)
	file := filepath.Join(t.TempDir(), "kappactl.yaml")
	text := "contexts:\n  dev: {brokers: [" + brokers[0] + "]}\n  prod: {brokers: [" + brokers[0] + "]}\ncurrent: dev\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"context use":        "dev\t" + brokers[0] + "\nprod\t" + brokers[0] + "\n",
		"status --context":   "dev\t" + brokers[0] + "\nprod\t" + brokers[0] + "\n",
		"dev load --topic":   "visits\n",
		"wait j --for":       "caught_up\nverified\nlive\nsettled\nretired\n",
		"status --output":    "table\njson\njsonl\nyaml\ncsv\n",
		"context use dev":    "",
		"deploy f --promote": "auto\nmanual\n",
	} {
		args := append(append([]string{"__complete"}, strings.Fields(line)...), "--config", file, "")
		if fields := strings.Fields(line); strings.HasPrefix(fields[len(fields)-1], "--") { // the word being completed follows its flag
			args = append([]string{"__complete", fields[0], "--config", file}, append(fields[1:], "")...)
		}
		kafkatest.Until(t, line+" is completed", func() bool {
			code, out, _ := runCLI(t, args...)
			got, _, _ := strings.Cut(out, ":4\n")
			if code != 0 || got != want && got != "" {
				t.Errorf("%s: exit %d: %q, want %q", line, code, got, want)
			}
			return got != "" || want == "" // brokers that do not answer in time complete nothing
		})
	}
}

func TestEveryCommandThatTakesAJobCompletesIt(t *testing.T) {
	n := 0
	for _, cmd := range tree(t) {
		_, names, _ := strings.Cut(cmd.Use, " ")
		if !strings.HasPrefix(names, "JOB") && !strings.HasPrefix(names, "[JOB") {
			continue
		}
		n++
		if cmd.ValidArgsFunction == nil {
			t.Errorf("%s does not complete jobs", cmd.CommandPath())
		}
	}
	if n < 10 {
		t.Errorf("only %d commands take a job", n)
	}
}

func TestFilesAndFoldersAreCompletedByTheirKind(t *testing.T) {
	for line, want := range map[string]string{
		"deploy":                    "yaml\nyml\n:8\n",
		"check":                     "yaml\nyml\n:8\n",
		"deploy a.yaml":             "yaml\nyml\n:8\n",
		"dev load":                  "parquet\ncsv\nndjson\njsonl\njson\n:8\n",
		"man":                       ":16\n",
		"doctor":                    ":4\n",
		"report j --dir":            ":16\n",
		"deploy f --report":         ":16\n",
		"status --config":           "yaml\nyml\n:8\n",
		"completion":                "bash\nzsh\nfish\npowershell\n:4\n",
		"deadletter retry j --file": "yaml\nyml\n:8\n",
	} {
		code, out, _ := runCLI(t, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
		if code != 0 || out != want {
			t.Errorf("%s: exit %d: %q, want %q", line, code, out, want)
		}
	}
}

func TestColumnsOfTheViewAreCompleted(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--detach", "--quiet")
	f.ends(job.ExitOK)
	f.exec(`CREATE VIEW public.pageviews_hourly AS SELECT ''::text AS url, now() AS hour, 1::bigint AS "odd ""name"`)
	for line, want := range map[string]string{
		"pageviews":            "url=\ttext\nhour=\ttimestamp with time zone\nodd \"name=\tbigint\n:6\n",
		"pageviews url=/a":     "hour=\ttimestamp with time zone\nodd \"name=\tbigint\n:6\n",
		"pageview":             ":6\n",
		"pageviews/../x url=1": ":6\n",
	} {
		args := append(append([]string{"__complete", "query"}, strings.Fields(line)...), f.config...)
		kafkatest.Until(t, line+" is completed", func() bool { // a database that does not answer in time completes nothing
			code, out, errs := runCLI(t, append(args, "")...)
			if code != job.ExitOK || out != want && out != ":6\n" {
				t.Errorf("%s: exit %d: %q%s, want %q", line, code, out, errs, want)
			}
			return out == want
		})
	}
}
