package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// annotates reports whether the command runs in a workflow of GitHub Actions, which shows annotations beside the code.
func (a *app) annotates() bool { return a.sys.Env("GITHUB_ACTIONS") == "true" }

// annotateFailure prints a workflow command for each cause of a failure. The service reads both streams.
func (a *app) annotateFailure(f failure) {
	if !a.annotates() {
		return
	}
	for _, p := range f.Problems {
		a.annotate("error", p)
	}
	if len(f.Problems) > 0 {
		return
	}
	for _, cause := range f.Causes {
		a.annotate("error", job.Problem{File: f.File, Cause: cause, Cure: f.Next})
	}
}

// annotateWarnings prints a workflow command for each warning about a job file.
func (a *app) annotateWarnings(ps job.Problems) {
	if a.annotates() {
		for _, p := range ps {
			a.annotate("warning", p)
		}
	}
}

func (a *app) annotate(level string, p job.Problem) {
	var where []string
	if p.File != "" && p.File != standardInput {
		where = append(where, "file="+property(a.inWorkspace(p.File)))
	}
	if p.Line > 0 {
		where = append(where, fmt.Sprintf("line=%d", p.Line), fmt.Sprintf("col=%d", max(p.Column, 1)))
	}
	title := "kappactl"
	if p.Path != "" {
		title += ": " + p.Path
	}
	text := p.Cause
	if p.Cure != "" {
		text += "\nfix: " + p.Cure
	}
	where = append(where, "title="+property(title))
	a.tell("::%s %s::%s\n", level, strings.Join(where, ","), data(job.Printable(text)))
}

// inWorkspace is a path from the root of the checkout, as annotations have it.
func (a *app) inWorkspace(path string) string {
	root := a.sys.Env("GITHUB_WORKSPACE")
	if root == "" {
		return path
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(root, whole); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return path
}

// data escapes the message of a workflow command, property one of its properties.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string { return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s)) }
