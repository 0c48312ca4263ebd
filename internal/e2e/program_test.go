package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const pagesJob = `job: pages
engine: program
source: {topics: [%s]}
program: {command: [%s, --from, "%d"], instances: 2, commit: table, grace: 5s}
serve:
  view: public.pages
  table: CREATE TABLE $table (page integer, clicks bigint NOT NULL, PRIMARY KEY (page))
checks:
  - {name: not_fewer, sql: "SELECT (SELECT sum(clicks) FROM candidate) > 0"}
ready: {max_lag_time: 5s, stable_for: 0s}
`

// goPages builds the Go example into the folder that agents allow.
func goPages(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(dir, "pages")
	build := exec.Command("go", "build", "-o", to, "../../examples/programs/pages")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	return to
}

// pythonPages is the Python example with an interpreter that has what it needs; the test is skipped where there is none.
func pythonPages(t *testing.T, dir string) string {
	t.Helper()
	python := filepath.Join(dir, "venv", "bin", "python")
	for _, line := range [][]string{
		{"python3", "-m", "venv", filepath.Join(dir, "venv")},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "psycopg[binary]>=3.2", "kafka-python[snappy,lz4,zstd]>=2.2"},
	} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: the Python example needs python3 and its packages: %v\n%s", err, out)
		}
	}
	text, err := os.ReadFile("../../examples/programs/pages.py")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "pages.py")
	text = append([]byte("#!"+python+"\n"), text...)
	if err := os.WriteFile(to, text, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return to
}

// clicksByPage is what produceClicks has produced in rounds of n, of pages from first on, as the view shows it.
func clicksByPage(rounds, n, first int) []string {
	counts := map[int]int{}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round*n), 7)) //nolint:gosec // as produceClicks
		for range n {
			r.IntN(72 * 3600)
			r.IntN(500)
			if page := r.IntN(200); page >= first {
				counts[page]++
			}
			r.IntN(5000)
		}
	}
	var out []string
	for page, clicks := range counts {
		out = append(out, fmt.Sprintf("%d %d", page, clicks))
	}
	slices.Sort(out)
	return out
}

func (w *world) pages(relation string) (out []string) {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `SELECT page || ' ' || clicks FROM `+relation)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, one)
	}
	slices.Sort(out)
	return out
}

// runningPrograms are the processes of the version tables' programs that run now, by their working folder's name.
func runningPrograms(path string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // of other users, too
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), path) || strings.Contains(string(text), "deploy") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(name, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestAProgramIsExactThroughKillsAndFlips kills programs and their agents while records arrive, and takes a second version
// through the life of every version.
func TestAProgramIsExactThroughKillsAndFlips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		example func(*testing.T, string) string
		rounds  int
	}{"go": {goPages, 6}, "python": {pythonPages, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if soak {
				c.rounds = 50
			}
			w := newWorld(t, kafkatest.Fake(t))
			jobs := filepath.Join(w.dir, "jobs")
			if err := os.Mkdir(jobs, 0o700); err != nil {
				t.Fatal(err)
			}
			path := c.example(t, jobs)
			w.vars = append(w.vars, "KAPPACTL_PROGRAMS="+jobs+"/*")
			t.Cleanup(func() {
				for _, pid := range runningPrograms(path) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			w.programLife(path, c.rounds)
		})
	}
}

func (w *world) programLife(path string, kills int) {
	const n = 500
	topic := clicksTopic(w.t, w.brokers, n)
	rounds := 1
	v1 := w.file("v1.yaml", fmt.Sprintf(pagesJob, topic, path, 0))
	a := w.serve()
	w.ok("deploy", v1)
	equals := func(relation string, first int) {
		w.t.Helper()
		want := clicksByPage(rounds, n, first)
		w.until("the counts are those of the log", func() bool { return slices.Equal(w.pages(relation), want) })
	}
	equals("public.pages", 0)
	for i := range kills {
		produceClicks(w.t, w.brokers, topic, rounds*n, n)
		rounds++
		if i%2 == 0 {
			for _, pid := range runningPrograms(path) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		} else { // its programs run on until they are fenced
			a.kill()
			a = w.serve()
		}
		equals("public.pages", 0)
	}
	w.programIsReady("v1")
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(pagesJob, topic, path, 100)))
	if o := w.run("diff", "pages", "v1", "v2", "--max-changed", "0%"); o.code != 5 {
		w.t.Errorf("diff of versions that differ: %+v", o)
	}
	w.programIsReady("v2")
	w.ok("promote", "pages", "v2")
	produceClicks(w.t, w.brokers, topic, rounds*n, n)
	rounds++
	equals("public.pages", 100)
	w.programIsReady("v1")
	w.ok("rollback", "pages")
	equals("public.pages", 0)
	w.ok("retire", "pages", "v2", "--now", "--yes")
	w.until("no program of v2 runs", func() bool { return len(runningPrograms(path)) == 2 })
	w.t.Logf("%d rows after %d records", len(w.pages("public.pages")), rounds*n)
	for _, args := range [][]string{{"verify", "pages"}, {"test", v1}} {
		if o := w.code(2, args...); !strings.Contains(o.stderr, "engine: program") {
			w.t.Errorf("%v says %s", args, o.stderr)
		}
	}
	a.stop()
	w.until("no program runs without an agent", func() bool { return len(runningPrograms(path)) == 0 })
}

// programIsReady waits until what is noted of ended programs is over.
func (w *world) programIsReady(version string) {
	w.t.Helper()
	w.until(version+" is ready", func() bool {
		var verdict string
		if err := w.pool.QueryRow(w.t.Context(), `SELECT verdict FROM kappactl.version WHERE 'v' || number = $1`, version).Scan(&verdict); err != nil {
			w.t.Fatal(err)
		}
		return verdict == "ready"
	})
}

// TestAProgramThatNoAgentAllowsIsRefused deploys one beside agents of several settings.
func TestAProgramThatNoAgentAllowsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := clicksTopic(t, w.brokers, 10)
	file := w.file("pages.yaml", fmt.Sprintf(pagesJob, topic, "/opt/jobs/pages", 0))
	w.serve()
	for _, want := range []string{"none allows any program", "they allow /opt/other/*"} {
		for _, command := range []string{"deploy", "plan"} {
			if o := w.code(2, command, file); !strings.Contains(o.stdout+o.stderr, want) {
				t.Errorf("%s says %s%s, want %s", command, o.stdout, o.stderr, want)
			}
		}
		w.vars = append(w.vars, "KAPPACTL_PROGRAMS=/opt/other/*")
		w.serve()
	}
	if n := w.sum(`SELECT count(*) FROM kappactl.version`); n != 0 {
		t.Errorf("%d versions were staged", n)
	}
}
