package e2e_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestATableIsTakenOverAndTheJobDropped follows what a person types from a table that another program fills to a job, back,
// and to the end of the job, while a reader polls the table's name and a report over it.
func TestATableIsTakenOverAndTheJobDropped(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, 5000)
	w.exec(`CREATE TABLE public.clicks_hourly (page integer, hour timestamptz, clicks bigint, total_ms numeric, avg_ms double precision, longest bigint)`)
	w.exec(`INSERT INTO public.clicks_hourly VALUES (1, '2026-01-01', 1, 1, 1, 1)`)
	w.exec(`CREATE VIEW public.report AS SELECT sum(clicks)::bigint AS clicks FROM public.clicks_hourly`)
	agent := w.serve()
	v1 := w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0))

	// What deploy prints is what is typed.
	says(t, w.run("deploy", v1, "--dry-run"), 6, "is a table that kappactl did not make")
	refused := w.code(6, "deploy", v1)
	_, next, _ := strings.Cut(refused.stderr, "next: ")
	command, _, _ := strings.Cut(next, "#")
	if strings.TrimSpace(command) != "kappactl adopt clicks --view public.clicks_hourly" {
		t.Fatal(refused.stderr)
	}
	if out := w.ok("adopt", "clicks", "--view", "clicks_hourly", "--dry-run"); !strings.Contains(out, `becomes "public"."clicks__v0"`) || !strings.Contains(out, "follows to the view: view report") {
		t.Error(out)
	}
	w.code(2, "status", "clicks")
	stopReading := w.keepReading("SELECT count(*), (SELECT sum(clicks) FROM report)::bigint FROM clicks_hourly")
	w.shell(command)
	says(t, w.run("verify", "clicks"), 6, "was adopted")
	says(t, w.run("diff", "clicks", "v0", "v0"), 2, "the adopted table on both sides")
	if out := w.ok("query", "clicks"); !strings.HasPrefix(out, "page\thour\tclicks\t") {
		t.Error(out)
	}

	// Detached, the deployment's id is all that is printed; wait attaches.
	if out := w.ok("deploy", v1, "--detach", "--quiet"); strings.Trim(out, "0123456789") != "\n" {
		t.Errorf("deploy --detach --quiet printed %q", out)
	}
	w.ok("wait", "clicks", "v1", "--for", "verified")
	var d struct {
		OnlyA   int64            `json:"only_a"`
		OnlyB   int64            `json:"only_b"`
		Changed int64            `json:"changed"`
		Offsets map[string]int64 `json:"offsets"`
	}
	w.into(&d, "diff", "clicks")
	if d.OnlyA+d.Changed != 1 || d.OnlyB < 1000 || d.Offsets[topic+"/0"] != 1250 {
		t.Errorf("the adopted table beside v1: %+v", d)
	}
	if o := w.code(5, "diff", "clicks", "v0", "v1", "--max-changed", "1%"); !strings.Contains(o.stdout, "only in v0") || !strings.Contains(o.stderr, "compared as it is now") {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	w.ok("promote", "clicks", "v1")
	w.equal("clicks")
	says(t, w.run("rollback", "clicks"), 8, "kappactl rollback clicks v0 --stale")
	w.ok("rollback", "clicks", "v0", "--stale")
	if n := w.sum("SELECT clicks FROM report"); n != 1 {
		t.Errorf("after going back the report shows %d clicks", n)
	}
	w.ok("deploy", v1, "--again")
	w.equal("clicks")
	w.ok("retire", "clicks", "v0", "--now", "--yes")

	// The end: other views stand in the way, then a kill, then nothing is left but the table that was there before.
	says(t, w.run("drop", "clicks", "--yes"), 6, "view report")
	says(t, w.run("drop", "clicks"), 2, "--yes")
	if polls := stopReading(); polls < 20 {
		t.Errorf("the reader saw only %d answers", polls)
	}
	w.exec(`DROP VIEW public.report`)
	if out := w.ok("drop", "clicks", "--dry-run"); !strings.Contains(out, `drop view "public"."clicks_hourly"`) || !strings.Contains(out, "kappactl.clicks.v1") {
		t.Error(out)
	}
	agent.stop()
	doomed := w.serve("KAPPACTL_FAULT=drop.marked:1")
	doomed.awaitHeartbeat()
	result := make(chan outcome, 1)
	go func() { result <- w.run("drop", "clicks", "--yes") }()
	<-doomed.done
	w.serve()
	if o := <-result; o.code != 0 {
		t.Fatalf("drop: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	w.goneFrom("clicks", "v1")
	if n := w.sum("SELECT count(*) FROM pg_class WHERE relname ~ '^clicks' AND relkind IN ('r', 'v')"); n != 1 || w.sum("SELECT clicks FROM clicks__v0") != 1 {
		t.Errorf("%d relations are left", n)
	}
	if out := w.ok("drop", "clicks", "--yes"); !strings.Contains(out, "nothing to do") {
		t.Error(out)
	}
	w.ok("history", "clicks")
	if out := w.ok("deploy", v1, "--detach"); !strings.Contains(out, "v2") {
		t.Errorf("numbers go on after a drop: %s", out)
	}
}

// shell runs a command line as a shell reads it.
func (w *world) shell(line string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", line)
	cmd.Env, cmd.Dir = append(w.env(), "PATH="+filepath.Dir(w.bin)), w.dir
	cmd.Path = "/bin/sh"
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%s: %v\n%s", line, err, out.String())
	}
}
