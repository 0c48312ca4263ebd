package reprocess

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// checkRun is one run of checks at one snapshot.
type checkRun struct {
	c        *Controller
	st       *state
	stage    string
	due      []job.Check
	with     counterpart
	patience time.Duration // for both versions to come to the same offsets

	layout  job.Layout    // of the version that is compared with
	results []CheckResult // one for each that was due
	at      map[string]int64
}

var (
	// errDone rolls the checks' transaction back: their views are not to stay.
	errDone = errors.New("done")
	// errCutOff is a connection that ended under a check.
	errCutOff = errors.New("the connection to PostgreSQL ended under it")
)

// slack is how much longer than its timeout a check may leave the network silent.
const slack = 10 * time.Second

// run runs the checks. What stands in their way is the answer of each; an error returned is for another try.
func (r *checkRun) run(ctx context.Context) error {
	by, err := r.meet(ctx)
	if err != nil {
		return err
	}
	if by != "" {
		defer r.c.release(ctx, by)
	}
	err = r.c.Pool.Snapshot(ctx, func(tx *pg.Tx) error {
		// Somebody may hold a table for long, as VACUUM FULL does. This statement takes no snapshot.
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", slack.Milliseconds())); err != nil {
			return err
		}
		if err := r.snapshot(ctx, tx, by); err != nil {
			return err
		}
		for _, k := range r.due {
			if err := r.one(ctx, tx, k); err != nil {
				return err
			}
		}
		if err := leaveNothing(ctx, tx); err != nil {
			return err
		}
		return errDone
	})
	switch {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() != nil, heals(err), pg.Unreachable(err) && !errors.Is(err, errCutOff):
		return err
	}
	r.rest(err)
	return nil
}

// rest gives the checks that did not come to an answer the reason why.
func (r *checkRun) rest(err error) {
	if errors.Is(err, errCutOff) && len(r.results) > 0 {
		err = fmt.Errorf("not run: the connection to PostgreSQL ended under check %q", r.results[len(r.results)-1].Name)
	}
	for i := len(r.results); i < len(r.due); i++ {
		r.results = append(r.results, CheckResult{Name: r.due[i].Name, Outcome: CheckNoAnswer, Detail: err.Error()})
	}
}

// meet brings both versions to the same offsets when a check needs both, and says under which holder.
func (r *checkRun) meet(ctx context.Context) (by string, err error) {
	if r.with.ref == nil || r.with.ref.Adopted() || !r.needsBoth() {
		return "", nil // what was adopted is compared as it is: it has no offsets to be held at
	}
	began := r.c.Now()
	for {
		by = r.c.holder(r.st.ref())
		_, err = r.c.barrier(ctx, by, r.st.ref(), *r.with.ref)
		if err == nil {
			return by, nil
		}
		r.c.release(ctx, by)
		if !heals(err) {
			return "", err
		}
		if r.c.Now().Sub(began) >= r.patience {
			r.with.ref = nil
			r.with.instead = CheckResult{Outcome: CheckNoAnswer, Detail: err.Error()}
			return "", nil
		}
		if !sleep(ctx, r.c.config.RetryEvery) {
			return "", ctx.Err()
		}
	}
}

func (r *checkRun) needsBoth() bool {
	for _, k := range r.due {
		if k.Diff != nil || job.Names(k.SQL, r.with.name) {
			return true
		}
	}
	return false
}

// snapshot takes the snapshot, lets the versions go on, and makes the views that the checks read; after that the transaction
// only reads.
func (r *checkRun) snapshot(ctx context.Context, tx *pg.Tx, by string) error {
	if by != "" {
		// The first statement takes the snapshot, and says whether the barrier stood in it.
		there, err := r.c.Positions.Reached(ctx, tx, by, false)
		if err != nil {
			return err
		}
		if !there {
			return &tryAgain{cause: "the barrier ended before the checks began"}
		}
	}
	positions, err := r.c.Positions.Positions(ctx, tx, r.st.ref())
	if err != nil {
		return err
	}
	r.at = offsetsOf(positions)
	if by != "" {
		r.c.release(ctx, by)
	}
	if err := r.views(ctx, tx); err != nil {
		return err
	}
	if err := r.fence(ctx, tx); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SET TRANSACTION READ ONLY`)
	return wrap(err, "make the checks read-only")
}

// The views behind diff checks: rows with what tells them apart.
const (
	keyedCandidate = "kappactl_candidate"
	keyedOther     = "kappactl_other"
)

func (r *checkRun) views(ctx context.Context, tx *pg.Tx) error {
	schema := r.st.schema()
	texts := map[string]string{"candidate": r.c.Views.Select(r.st.ref(), schema, r.st.layout), keyedCandidate: r.c.Views.Select(r.st.ref(), schema, r.st.layout.Audited())}
	if r.stage == job.CheckAfter {
		texts["live"] = texts["candidate"]
	}
	if r.with.ref != nil {
		var err error
		if _, r.layout, err = specOf(ctx, tx, *r.with.ref); err != nil {
			return err
		}
		if r.with.ref.Adopted() {
			r.layout = keyedAs(r.layout, r.st.layout)
		}
		texts[r.with.name], texts[keyedOther] = r.c.Views.Select(*r.with.ref, schema, r.layout), r.c.Views.Select(*r.with.ref, schema, r.layout.Audited())
	}
	for name, text := range texts {
		if err := pg.One(ctx, tx.Raw(), fmt.Sprintf("CREATE TEMPORARY VIEW %s AS\n%s", name, text)); err != nil {
			return fmt.Errorf("make the views that checks read: %w", err)
		}
		if role := r.c.config.ChecksRole; role != "" {
			if _, err := tx.Raw().Exec(ctx, fmt.Sprintf("GRANT SELECT ON %s TO %s", name, pg.Ident(role))); err != nil {
				return fmt.Errorf("let role %s, which runs checks, read them: %w", role, err)
			}
		}
	}
	return nil
}

// one runs one check in a savepoint, as the role of checks. Its own errors are no answer; an error returned ends the run.
func (r *checkRun) one(ctx context.Context, tx *pg.Tx, k job.Check) error {
	began := r.c.Now()
	result := CheckResult{Name: k.Name}
	if k.Diff != nil && r.with.ref == nil {
		result.Outcome, result.Detail = r.with.instead.Outcome, r.with.instead.Detail
		r.results = append(r.results, result)
		return nil
	}
	if k.Timeout <= 0 {
		k.Timeout = job.DefaultCheckTimeout
	}
	limited, cancel := context.WithTimeout(ctx, k.Timeout+slack)
	defer cancel()
	save, err := tx.Raw().Begin(limited)
	if err != nil {
		return fmt.Errorf("check %q: %w", k.Name, err)
	}
	err = r.ask(limited, save, k, &result)
	result.Seconds = r.c.since(began)
	if err != nil {
		result.Outcome, result.Detail = r.reason(k, err, result.Seconds)
	}
	r.results = append(r.results, result)
	switch back := save.Rollback(limited); {
	case ctx.Err() != nil:
		return ctx.Err()
	case tx.Raw().Conn().IsClosed() || back != nil:
		last := &r.results[len(r.results)-1]
		last.Outcome, last.Detail = CheckNoAnswer, errCutOff.Error()
		return errCutOff
	}
	return nil
}

// ask runs the check's SQL or its comparison.
func (r *checkRun) ask(ctx context.Context, tx pgx.Tx, k job.Check, out *CheckResult) (err error) {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", k.Timeout.Milliseconds())); err != nil {
		return err
	}
	if err := takeRole(ctx, tx, r.c.config.ChecksRole); err != nil {
		return err
	}
	if k.Diff == nil {
		out.Outcome, err = sqlCheck(ctx, tx, k.SQL)
		if out.Outcome == CheckFail {
			out.Detail = "it returned false"
		}
		return err
	}
	d := Diff{Job: job.Name(r.st.Job), A: r.with.ref.Number.String(), B: job.Number(r.st.Number).String(), Examples: []DiffExample{}, Offsets: r.at}
	other, mine := side{*r.with.ref, r.layout, "TABLE " + keyedOther}, side{r.st.ref(), r.st.layout, "TABLE " + keyedCandidate}
	if err := compare(ctx, tx, fenced(tx), other, mine, k.Diff.DiffHow, &d); err != nil {
		return err
	}
	out.Diff = &d
	out.Outcome, out.Detail = judgeDiff(d, *k.Diff)
	return nil
}

// reason is the outcome of a check that came to no end.
func (r *checkRun) reason(k job.Check, err error, seconds float64) (CheckOutcome, string) {
	code := pg.Code(err)
	switch {
	case code == "57014" && seconds >= k.Timeout.Seconds():
		return CheckNoAnswer, fmt.Sprintf("no answer within %s", k.Timeout)
	case code == "57014":
		return CheckNoAnswer, "it was cancelled in PostgreSQL"
	case code == "42P01" && r.with.ref == nil && r.with.instead.Outcome != "" && mentions(err, r.with.name):
		return r.with.instead.Outcome, r.with.instead.Detail
	case code == "25006":
		return CheckNoAnswer, "it writes, and checks only read: " + plainPG(err)
	case code != "":
		return CheckNoAnswer, plainPG(err)
	}
	return CheckNoAnswer, err.Error()
}

// mentions says that the text of an error names a relation.
func mentions(err error, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(err.Error())
}

// sqlCheck is the answer of a query that returns one row with one boolean.
func sqlCheck(ctx context.Context, tx pgx.Tx, text string) (CheckOutcome, error) {
	if err := job.ReadsOnly(text); err != nil {
		return "", err
	}
	if err := oneBoolean(ctx, tx, text); err != nil {
		return "", err
	}
	counted, err := countedAnswer(ctx, tx, text)
	if err != nil {
		return "", err
	}
	rows, err := fenced(tx)(ctx, counted, "n bigint, answer boolean")
	if err != nil {
		return "", err
	}
	var n int64
	var answer *bool
	if _, err := pgx.ForEachRow(rows, []any{&n, &answer}, func() error { return nil }); err != nil {
		return "", err
	}
	switch {
	case n != 1:
		return "", fmt.Errorf("it returned %s rows; a check returns one row with one boolean", grouped(n))
	case answer == nil:
		return "", errors.New("it returned NULL; write coalesce(…, false) where that is a failure")
	case !*answer:
		return CheckFail, nil
	}
	return CheckPass, nil
}

// oneBoolean refuses a query that returns something else than one column of booleans. A domain is described as what it is over.
func oneBoolean(ctx context.Context, tx pgx.Tx, text string) error {
	fields, err := fieldsOf(ctx, tx, text)
	if err != nil {
		return err
	}
	if len(fields) != 1 {
		return fmt.Errorf("it returned %d columns; a check returns one row with one boolean", len(fields))
	}
	if oid := fields[0].DataTypeOID; oid != pgtype.BoolOID {
		name := fmt.Sprintf("of type %d", oid)
		if t, ok := tx.Conn().TypeMap().TypeForOID(oid); ok {
			name = t.Name
		}
		return fmt.Errorf("its value is %s; a check returns one row with one boolean", name)
	}
	return nil
}
