package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/render"
)

// standardInput is the FILE that means standard input.
const standardInput = "-"

// jobFile is a job file as a command line names it, with what gives its variables their values.
type jobFile struct {
	path string
	set  assignments
	vars string // path of a file of variables
}

// flags adds the flags that give variables.
func (f *jobFile) flags(flags *pflag.FlagSet) {
	flags.Var(&f.set, "set", "give the job file's ${NAME} a value, as `NAME=VALUE`; may be repeated")
	flags.StringVar(&f.vars, "vars", "",
		"give variables by a `FILE` of lines NAME=VALUE; --set overrides it, it overrides the environment")
}

// String is the job file with its flags as the next command line needs them.
func (f jobFile) String() string {
	words := []string{render.ShellWord(f.path)}
	if f.vars != "" {
		words = append(words, "--vars", render.ShellWord(f.vars))
	}
	for _, a := range f.set {
		words = append(words, "--set", render.ShellWord(a.name+"="+a.value))
	}
	return strings.Join(words, " ")
}

// assignment is NAME=VALUE.
type assignment struct{ name, value string }

// assignments is a flag that may be repeated.
type assignments []assignment

func (a *assignments) String() string { return "" }

// Type is the type that help prints after the name of the flag.
func (a *assignments) Type() string { return "NAME=VALUE" }

// Set takes one NAME=VALUE.
func (a *assignments) Set(text string) error {
	one, err := parseAssignment(text)
	if err == nil {
		*a = append(*a, one)
	}
	return err
}

func parseAssignment(text string) (assignment, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || !job.VariableName.MatchString(name) {
		return assignment{}, errors.New("want NAME=VALUE, with a name of letters, digits and _")
	}
	return assignment{name, value}, nil
}

// readVariables reads a file of lines NAME=VALUE. Empty lines and lines that begin with # are left out.
func readVariables(path string) ([]assignment, error) {
	text, err := job.ReadText(path)
	if err != nil {
		return nil, err
	}
	var out []assignment
	var ps job.Problems
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		one, err := parseAssignment(line)
		switch {
		case err != nil:
			ps = append(ps, job.Problem{
				File: path, Line: i + 1, Column: 1, Cause: "the line is not NAME=VALUE",
				Cure: "write a name of letters, digits and _, then = and the value, without spaces around =",
			})
		case strings.HasPrefix(one.value, `"`) || strings.HasPrefix(one.value, "'"):
			ps = append(ps, job.Problem{
				File: path, Line: i + 1, Column: len(one.name) + 2, Cause: "the value of " + one.name + " begins with a quote",
				Cure: "write the value without quotes: it is everything behind =",
			})
		default:
			out = append(out, one)
		}
	}
	if len(ps) > 0 {
		return nil, ps
	}
	return out, nil
}

// variables are those of --set, then of --vars, then of the environment, where an empty one is not defined.
func (a *app) variables(f jobFile) (job.Variables, error) {
	values := map[string]string{}
	if f.vars != "" {
		given, err := readVariables(f.vars)
		if err != nil {
			return job.Variables{}, err
		}
		for _, one := range given {
			values[one.name] = one.value
		}
	}
	for _, one := range f.set {
		values[one.name] = one.value
	}
	return job.Variables{
		Lookup: func(name string) (string, bool) {
			if value, found := values[name]; found {
				return value, true
			}
			value := a.sys.Env(name)
			return value, value != ""
		},
		Secret: func(name, value string) bool { return config.IsSecret(name, value, a.sys.Env) },
	}, nil
}

// read reads the job file.
func (a *app) read(ctx context.Context, f jobFile) (*job.Spec, error) {
	a.current().file = f.path
	name, text, err := f.path, []byte(nil), error(nil)
	if name == standardInput {
		name = "standard input"
		text, err = a.readInput(ctx)
	} else {
		text, err = job.ReadText(f.path)
	}
	if err != nil {
		return nil, err
	}
	vars, err := a.variables(f)
	if err != nil {
		return nil, err
	}
	spec, err := job.ParseWith(name, text, vars)
	if err != nil {
		return nil, withNext(err, "kappactl check "+a.withoutSecrets(f).String())
	}
	now := a.current()
	now.job, now.variables = spec.Job, spec.Variables
	for _, one := range f.set {
		if !now.many && !slices.Contains(spec.Variables, one.name) {
			return nil, unusedVariable(one.name, spec.Variables)
		}
	}
	return spec, nil
}

// withoutSecrets is f with *** in place of values that are refused because they are secrets.
func (a *app) withoutSecrets(f jobFile) jobFile {
	f.set = slices.Clone(f.set)
	for i, one := range f.set {
		if config.IsSecret(one.name, one.value, a.sys.Env) {
			f.set[i].value = "***"
		}
	}
	return f
}

// unusedVariable refuses a --set that changes nothing: nearly always a name with a typing error.
func unusedVariable(name string, used []string) error {
	cure := "remove it, or write ${" + name + "} where the value is meant to be"
	if len(used) > 0 {
		cure = strict.Suggest(name, used)
	}
	return job.Problems{{Cause: fmt.Sprintf("--set %s: the job file has no ${%s}", name, name), Cure: cure}}
}

// readInput reads standard input up to the size of a job file.
func (a *app) readInput(ctx context.Context) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(a.sys.In, strict.MaxBytes+1))
		done <- read{text, err}
	}()
	select {
	case <-ctx.Done(): // the reader may wait for a person
		return nil, fmt.Errorf("read the job file from standard input: %w", ctx.Err())
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("read the job file from standard input: %w", r.err)
		}
		return r.text, nil
	}
}

// compiled is a job file that can be deployed.
type compiled struct {
	spec  *job.Spec
	query *query.Compiled
	hash  string
}

// compile reads a job file and takes its query apart. It opens no connection.
func (a *app) compile(ctx context.Context, f jobFile) (*compiled, error) {
	spec, err := a.read(ctx, f)
	if err != nil {
		return nil, err
	}
	faulty := func(err error) error {
		if errors.As(err, new(job.Problems)) { // else the file is not the cause
			err = withNext(err, "kappactl check "+f.String())
		}
		return err
	}
	if err := spec.Supported(); err != nil {
		return nil, faulty(err)
	}
	if err := schedule.Check(spec); err != nil {
		return nil, faulty(err)
	}
	q, err := layoutOf(ctx, spec)
	if err != nil {
		return nil, faulty(err)
	}
	if err := spec.CheckColumns(q.Layout); err != nil {
		return nil, faulty(err)
	}
	return &compiled{spec: spec, query: q, hash: spec.Hash(dialectOf(spec))}, nil
}

// layoutOf compiles the query of a job; of one whose program computes the results there is only the layout of its
// table.
func layoutOf(ctx context.Context, spec *job.Spec) (*query.Compiled, error) {
	if spec.Engine == job.SQL {
		return query.Compile(ctx, spec)
	}
	layout, err := spec.TableLayout()
	if err != nil {
		return nil, err
	}
	return &query.Compiled{Layout: layout}, nil
}

// dialectOf is the dialect of a job's query; 0: it has none, so no agent runs it as one.
func dialectOf(spec *job.Spec) int {
	if spec.Engine == job.SQL {
		return query.Dialect
	}
	return 0
}
