package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

func TestAPlanAsMarkdown(t *testing.T) {
	t.Parallel()
	live := "v1"
	r := planResult{
		Job: "a", Version: "v2", Action: "stage", Live: &live, Hash: "abc", View: planView{Name: "public.a"},
		Diff: textDiff("a v1 (live)", "job: a\nquery: |\n  SELECT 1 -- ```\n", "jobs/a.yaml", "job: a\nquery: |\n  SELECT 2 -- ```\n"),
		Refusals: []planRefusal{
			{ExitCode: job.ExitConflict, Cause: "x | y\nz <b>", Next: "kappactl deploy a.yaml"},
			{ExitCode: job.ExitConflict, Cause: "lost column", Next: "keep the column | use a new view"},
		},
		Warnings: []string{"slow"},
	}
	r.View.Added = []planColumn{{"n", "bigint"}}
	text := r.markdown("jobs/a.yaml")
	for _, want := range []string{
		"### a: stage v2 (abc) and replay from", "`jobs/a.yaml`, live: v1", "````diff\n--- a v1 (live)\n+++ jobs/a.yaml\n@@", "\n-  SELECT 1 -- ```\n+  SELECT 2 -- ```\n````\n",
		`exit code 6: x \| y<br>z &lt;b>`, "> [!WARNING]\n> slow\n", "| new column | n bigint |", "Next: `kappactl deploy a.yaml`",
		`Next: keep the column \| use a new view`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	for _, c := range []struct {
		style render.Style
		want  string
	}{{render.Style{}, "\ndiff\t-  SELECT 1"}, {render.Style{People: true}, "\n-  SELECT 1"}} {
		var b bytes.Buffer
		if err := r.print(&b, c.style); err != nil || !strings.Contains(b.String(), c.want) {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}

func TestAPageHasRoomInAComment(t *testing.T) {
	t.Parallel()
	var all manyResult
	for i := range 50 {
		all.Files = append(all.Files, fileResult{File: fmt.Sprintf("jobs/%d.yaml", i), section: strings.Repeat("x", 5000)})
	}
	text := all.markdown()
	if len(text) > 65_536 || !strings.HasPrefix(text, pageMark) || !strings.Contains(text, "more files are in the output of the command") {
		t.Errorf("%d characters", len(text))
	}
	long := strings.Repeat("-x\n", 1000)
	if got := shortened(long); strings.Count(got, "\n") != mostDiff+1 || !strings.HasSuffix(got, "more lines\n") {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

func TestFailuresOfAPlanAsMarkdown(t *testing.T) {
	t.Parallel()
	wrong := wrongly(t)["test"][0]
	code, out, _ := runCLI(t, "plan", wrong, "-o", "markdown")
	if code != job.ExitUsage || !strings.HasPrefix(out, pageMark+"### "+wrong+": failed\n") || !strings.Contains(out, "colums") {
		t.Errorf("exit %d: %s", code, out)
	}
	code, out, _ = runCLI(t, "plan", wrong, pageviews(), "-o", "markdown")
	if code != job.ExitUsage || strings.Count(out, "<details>") != 2 || strings.Count(out, pageMark) != 1 {
		t.Errorf("exit %d: %s", code, out)
	}
}
