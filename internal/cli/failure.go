package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
)

// failureDoc is a failure for programs.
type failureDoc struct {
	Code     string       `json:"code"` // job_file, or the name of the exit code
	ExitCode job.ExitCode `json:"exit_code"`
	Reason   reason.Code  `json:"reason_code"` // empty: none is known
	Message  string       `json:"message"`
	File     string       `json:"file"` // of the first problem
	Line     *int         `json:"line"`
	Column   *int         `json:"column"`
	Fix      string       `json:"fix"`
	Next     string       `json:"next"`
	Problems []problemDoc `json:"problems"` // all faults of a job file
}

// problemDoc is one fault of a job file for programs.
type problemDoc struct {
	File    string `json:"file"`
	Line    *int   `json:"line"`
	Column  *int   `json:"column"`
	Path    string `json:"path"`
	Dialect string `json:"dialect"`
	Message string `json:"message"`
	Excerpt string `json:"excerpt"`
	Fix     string `json:"fix"`
}

// failureCode is the name of an exit code in a failure.
func failureCode(code job.ExitCode) string {
	names := map[job.ExitCode]string{
		job.ExitFailed: "failed", job.ExitUsage: "usage", job.ExitNotCaughtUp: "not_caught_up", job.ExitTimeout: "timeout",
		job.ExitChecks: "checks", job.ExitConflict: "conflict", job.ExitGap: "gap", job.ExitUnhealthy: "unhealthy",
		job.ExitRolledBack: "rolled_back", job.ExitNothing: "nothing", job.ExitUnreachable: "unreachable",
		job.ExitInterrupted: "interrupted",
	}
	return cmp.Or(names[code], "failed")
}

// doc is the failure for programs.
func (f failure) doc() *failureDoc {
	d := &failureDoc{
		Code: failureCode(f.Code), ExitCode: f.Code, Reason: f.Reason, Message: strings.Join(f.Causes, "; "), Next: f.Next,
		Problems: []problemDoc{},
	}
	for _, p := range f.Problems {
		d.Problems = append(d.Problems, problemDoc{
			File: p.File, Line: placed(p.Line), Column: placed(p.Column), Path: p.Path, Dialect: p.Dialect, Message: p.Cause,
			Excerpt: p.Excerpt, Fix: p.Cure,
		})
	}
	if len(d.Problems) > 0 {
		first := d.Problems[0]
		d.Code, d.Message, d.Fix = "job_file", first.Message, first.Fix
		if first.Path != "" {
			d.Message = first.Path + ": " + d.Message
		}
		d.File, d.Line, d.Column = first.File, first.Line, first.Column
	}
	return d
}

// placed is a line or a column; nil: unknown.
func placed(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// failsAsData reports whether failures are printed as documents on the output stream.
func (a *app) failsAsData() bool {
	return slices.Contains([]render.Format{render.FormatJSON, render.FormatLines, render.FormatYAML},
		render.Format(a.flags.output.value))
}

// fails prints a failure for programs, unless a result has included it.
func (a *app) fails(f failure) {
	if a.current().failed {
		return
	}
	if a.flags.output.value == junitFormat {
		_ = a.suite(f.junit())
	}
	if a.flags.output.value == markdownFormat {
		_ = a.page(f.markdown())
	}
	if a.failsAsData() {
		a.current().failed = true
		// When the reader is gone, the exit code is all that is left.
		_ = render.Write(a.out(), render.Format(a.flags.output.value), map[string]*failureDoc{"failure": f.doc()})
	}
}

// outcome prints the result of a command that ends with err; for programs the result includes the failure.
func (a *app) outcome(ctx context.Context, v any, text func(io.Writer) error, err error) error {
	if err == nil || !a.failsAsData() {
		if text == nil && !a.machine() {
			return err
		}
		return errors.Join(a.result(v, text), err)
	}
	f := explain(ctx, err)
	if f.Code == job.ExitNothing {
		return errors.Join(a.result(v, text), err)
	}
	whole, joined := withFailure(v, f.doc())
	if joined != nil {
		return errors.Join(joined, err)
	}
	a.current().failed = true
	return errors.Join(render.Write(a.out(), render.Format(a.flags.output.value), whole), err)
}

// withFailure adds a failure to an object. A list stays as it is: its elements have exit codes of their own.
func withFailure(v any, doc *failureDoc) (any, error) {
	var b bytes.Buffer
	if err := render.Line(&b, v); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	if !bytes.HasPrefix(text, []byte("{")) {
		return v, nil
	}
	var failed bytes.Buffer
	if err := render.Line(&failed, doc); err != nil {
		return nil, err
	}
	separator := ","
	if bytes.Equal(text, []byte("{}")) {
		separator = ""
	}
	return json.RawMessage(fmt.Sprintf("%s%s\"failure\":%s}", text[:len(text)-1], separator,
		bytes.TrimSpace(failed.Bytes()))), nil
}

// outputOf finds --output on a command line that could not be read as a whole, or its variable.
func (a *app) outputOf(args []string) {
	set := func(value string) { _ = a.flags.output.Set(value) } // one that is not known is an error already
	if a.flags.output.given {
		return
	}
	set(a.sys.Env(outputVariable))
	for i, arg := range args {
		switch {
		case arg == "--":
			return
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			set(args[i+1])
		case strings.HasPrefix(arg, "--output="):
			set(strings.TrimPrefix(arg, "--output="))
		case strings.HasPrefix(arg, "-o") && len(arg) > 2:
			set(strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "="))
		}
	}
}
