package query

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// The paths of the job file that this package reports on.
const (
	pathQuery = "query"
	pathServe = "serve"
)

// refusals collects the problems of one job. The goroutine that compiles owns it.
type refusals struct {
	spec     *job.Spec
	problems job.Problems
	warnings job.Problems // valid but probably unintended
}

// warn reports something probably unintended at a byte offset of the query, with its fix.
func (r *refusals) warn(at int, cause, cure string) {
	r.warnings = append(r.warnings, r.spec.ProblemAt(pathQuery, max(at, 0), job.DuckDBSQL, cause, cure))
}

// add reports a problem at a byte offset of the query (-1: unknown), with its fix.
func (r *refusals) add(at int, cause, cure string) {
	p := r.spec.ProblemAt(pathQuery, max(at, 0), job.DuckDBSQL, cause, cure)
	for _, q := range r.problems {
		if q == p {
			return
		}
	}
	r.problems = append(r.problems, p)
}

// serve reports a problem of a setting below serve.
func (r *refusals) serve(path, cause, cure string) {
	r.problems = append(r.problems, r.spec.Problem(pathServe+"."+path, job.PostgreSQL, cause, cure))
}

// err returns the problems found so far, or nil.
func (r *refusals) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

// named prefixes a cause with the column.
func named(name, cause string) string {
	if name == "" {
		return cause
	}
	return fmt.Sprintf("column %q: %s", name, cause)
}
