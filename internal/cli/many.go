package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// manyAtOnce is how many job files one command works on at a time.
const manyAtOnce = 4

// jobFiles are the arguments FILE of a command that takes several.
type jobFiles struct {
	*app
	args  []string
	flags *jobFile // with --set and --vars
	since string   // only files that differ from this revision of the repository; empty: all
	// deploys is set for deploy: no two files may be of one job, and a stream has the events of all of them.
	deploys bool
}

// several wants at least one FILE.
func several(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd, "missing argument FILE")
	}
	if len(args) > 1 && slices.Contains(args, standardInput) {
		return usage(cmd, "standard input is one job file: name no other FILE beside -")
	}
	return nil
}

// fileResult is the result of one of several job files.
type fileResult struct {
	File     string          `json:"file"`
	Job      job.Name        `json:"job"` // empty: the file could not be read
	ExitCode job.ExitCode    `json:"exit_code"`
	Summary  string          `json:"summary"`
	Result   json.RawMessage `json:"result"`  // what the command prints for one file; null: nothing
	Failure  json.RawMessage `json:"failure"` // null: it succeeded

	section string // of a page
	text    []byte // for people
	next    string
	suite   *junitSuite
}

// manyResult is the output of a command for several job files.
type manyResult struct {
	Files    []fileResult `json:"files"`
	Failed   int          `json:"failed"`
	ExitCode job.ExitCode `json:"exit_code"`
}

// each runs a command for its job files: a single one as it is, several at a time with one summary.
func (j jobFiles) each(ctx context.Context, run func(context.Context, *app, string) error) error {
	files, whole, err := j.list(ctx)
	if err != nil {
		return err
	}
	if len(files) == 1 && !whole {
		return run(ctx, j.app, files[0])
	}
	if err := j.distinct(ctx, files); err != nil {
		return err
	}
	results, used := make([]fileResult, len(files)), make([][]string, len(files))
	var errs sync.Mutex
	var group errgroup.Group
	group.SetLimit(manyAtOnce)
	for i, path := range files {
		group.Go(func() error {
			results[i], used[i] = j.one(ctx, path, &errs, run)
			return nil
		})
	}
	_ = group.Wait() // the failures are in the results
	if err := j.unused(slices.Concat(used...)); err != nil && len(files) > 0 {
		return err
	}
	return j.sum(ctx, results)
}

// unused refuses a --set that no file uses.
func (j jobFiles) unused(used []string) error {
	for _, one := range j.flags.set {
		if !slices.Contains(used, one.name) {
			return unusedVariable(one.name, used)
		}
	}
	return nil
}

// distinct refuses two files of one job, whose deployments would end each other.
func (j jobFiles) distinct(ctx context.Context, files []string) error {
	if !j.deploys {
		return nil
	}
	by := map[job.Name]string{}
	for _, path := range files {
		f, quiet := *j.flags, *j.app
		f.path, quiet.state = path, &state{many: true}
		spec, err := quiet.read(ctx, f)
		if err != nil {
			continue // it fails by itself
		}
		if other := by[spec.Job]; other != "" {
			return &job.Refusal{
				Code: job.ExitUsage, Cause: fmt.Sprintf("%s and %s are both files of the job %s", other, path, spec.Job),
				Next: "deploy one of them, and then the other",
			}
		}
		by[spec.Job] = path
	}
	return nil
}

// one runs the command for one of several files. Its output is kept; lines of the error stream begin with the file.
func (j jobFiles) one(ctx context.Context, path string, mu *sync.Mutex,
	run func(context.Context, *app, string) error,
) (fileResult, []string) {
	var out bytes.Buffer
	sub := *j.app
	sub.state = &state{many: true, file: path}
	sub.sys.Out, sub.sys.InTTY = &out, false // several questions at a time cannot be answered
	sub.sys.Err, sub.sys.ErrTTY = &prefixed{w: j.sys.Err, mu: mu, prefix: path + ": "}, false
	switch format := j.flags.format(j.app); {
	case j.streams() && j.deploys:
		sub.sys.Out = &prefixed{w: j.sys.Out, mu: mu}
	case j.failsAsData(), format == render.FormatCSV:
		sub.flags.output.value = string(render.FormatJSON)
	}
	err := run(ctx, &sub, path)
	r := fileResult{File: path, Job: sub.state.job, Summary: sub.state.summary, suite: sub.state.suite}
	if err != nil {
		f := sub.ends(ctx, "", err)
		r.ExitCode, r.next = f.Code, f.Next
		if len(f.Causes) > 0 && f.Code != job.ExitNothing {
			r.Summary = firstLine(f.Causes[0])
		}
		if r.suite == nil {
			suite := f.junit()
			r.suite = &suite
		}
	}
	r.section = sub.state.section
	r.text = out.Bytes()
	r.split()
	return r, sub.state.variables
}

// split takes the failure out of the document that the command printed.
func (r *fileResult) split() {
	r.Result, r.Failure = json.RawMessage("null"), json.RawMessage("null")
	var members map[string]json.RawMessage
	if json.Unmarshal(r.text, &members) != nil {
		return
	}
	if failed := members["failure"]; failed != nil {
		r.Failure = failed
		if len(members) == 1 {
			return
		}
	}
	r.Result = bytes.TrimSpace(r.text)
}

// firstLine is the start of a text of several lines.
func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// severity orders exit codes by what a person has to look at first.
var severity = []job.ExitCode{
	job.ExitOK, job.ExitNothing, job.ExitNotCaughtUp, job.ExitTimeout, job.ExitChecks, job.ExitConflict,
	job.ExitRolledBack,
	job.ExitUnhealthy, job.ExitGap, job.ExitUsage, job.ExitFailed, job.ExitUnreachable, job.ExitInterrupted,
}

// worst is the exit code of several files: the most severe, and 10 only if there was nothing to do for any of them.
func worst(results []fileResult) job.ExitCode {
	code, nothing := job.ExitOK, len(results) > 0
	for _, r := range results {
		nothing = nothing && r.ExitCode == job.ExitNothing
		if slices.Index(severity, r.ExitCode) > slices.Index(severity, code) {
			code = r.ExitCode
		}
	}
	if code == job.ExitNothing && !nothing {
		return job.ExitOK
	}
	return code
}

// sum prints what became of all files and ends with the most severe exit code.
func (j jobFiles) sum(ctx context.Context, results []fileResult) error {
	all := manyResult{Files: results, ExitCode: worst(results)}
	next := ""
	for _, r := range results {
		if r.ExitCode != job.ExitOK && r.ExitCode != job.ExitNothing {
			all.Failed++
			next = cmp.Or(next, r.next)
		}
	}
	err := exitWith(all.ExitCode)
	if all.Failed > 0 {
		err = &job.Refusal{
			Code: all.ExitCode, Cause: fmt.Sprintf("%d of %s failed", all.Failed,
				render.Plural(int64(len(results)), "job file")), Next: next,
		}
	}
	if j.flags.format(j.app) == junitFormat {
		var suites []junitSuite
		for _, r := range results {
			suites = append(suites, *r.suite)
		}
		j.current().failed = true
		return cmp.Or(writeJUnit(j.out(), suites...), err)
	}
	if j.flags.format(j.app) == markdownFormat {
		j.current().failed = true
		_, wrong := io.WriteString(j.out(), all.markdown())
		return cmp.Or(wrong, err)
	}
	if j.streams() && !j.deploys {
		return cmp.Or(j.result(results, nil), err)
	}
	return j.outcome(ctx, all, func(w io.Writer) error { return all.print(w, j.style()) }, err)
}

func (r manyResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("file", "job", ">exit code", "result")
	for _, f := range r.Files {
		if len(f.text) > 0 {
			if _, err := fmt.Fprintf(w, "%s\n%s\n", style.Paint(render.Strong, f.File), f.text); err != nil {
				return err
			}
		}
		tone := render.Good
		if f.ExitCode != job.ExitOK && f.ExitCode != job.ExitNothing {
			tone = render.Bad
		}
		t.Add(render.Text(f.File), render.Text(render.Or(string(f.Job))), render.Toned(tone, fmt.Sprint(int(f.ExitCode))),
			render.Text(render.Or(f.Summary)))
	}
	return t.Write(w, style)
}

// format is the value of --output.
func (jobFile) format(a *app) render.Format { return render.Format(a.flags.output.value) }

// prefixed writes whole lines, each with a prefix. Several of them share a stream.
type prefixed struct {
	w      io.Writer
	mu     *sync.Mutex
	prefix string
	rest   []byte // of a line that has not ended
}

func (p *prefixed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, text...)
	for {
		end := bytes.IndexByte(p.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := p.rest[:end+1]
		p.rest = p.rest[end+1:]
		prefix := p.prefix
		if bytes.HasPrefix(line, []byte("::")) { // an annotation is one at the start of a line only
			prefix = ""
		}
		if _, err := io.WriteString(p.w, prefix+string(line)); err != nil {
			return 0, err
		}
	}
}
