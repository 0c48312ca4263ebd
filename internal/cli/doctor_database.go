package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/speedlayer"
)

const (
	// oldestServer is the first PostgreSQL with NULLS NOT DISTINCT.
	oldestServer = 150000
	// clockLimit is how far the clocks of this machine and the database may be apart before lags and leases are odd.
	clockLimit = 2 * time.Second
)

// serverFacts is what the database says about itself and about us.
type serverFacts struct {
	Version   int
	Printed   string
	Database  string
	Role      string
	Temporary bool // may make temporary tables
	Stats     bool // may see other sessions
	Pid       int64
	Now       time.Time
}

const selectServer = `SELECT current_setting('server_version_num')::integer AS version, current_setting('server_version') AS printed,
	current_database()::text AS database, current_user::text AS role, has_database_privilege(current_database(), 'TEMPORARY') AS temporary,
	pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS stats, pg_backend_pid()::bigint AS pid, clock_timestamp() AS now`

// database opens the database and looks at the server, the role, the way there and the clock.
func (e *examination) database(ctx context.Context) bool {
	const check = "database"
	short, cancel := context.WithTimeoutCause(ctx, doctorPatience, errTimeout)
	defer cancel()
	pool, err := e.connect(short, e.settings)
	if err != nil {
		e.failed(ctx, check, err)
		return false
	}
	e.pool = pool
	began := e.sys.Now()
	var facts serverFacts
	direct := true
	err = pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, selectServer)
		if err != nil {
			return err
		}
		facts, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[serverFacts])
		// A pooler gives a process id of its own at login.
		direct = int64(tx.Raw().Conn().PgConn().PID()) == facts.Pid
		return err
	})
	if err != nil {
		e.failed(ctx, check, err)
		return false
	}
	took := e.sys.Now().Sub(began)
	if facts.Version < oldestServer {
		e.note(check, healthFailed, "upgrade PostgreSQL to 15 or later", "PostgreSQL %s; version tables need 15 or later", facts.Printed)
	} else {
		e.note(check, healthOK, "", "PostgreSQL %s, database %s, role %s", facts.Printed, facts.Database, facts.Role)
	}
	if direct {
		e.note("pooler", healthOK, "", "none in between")
	} else {
		e.note("pooler", healthOK, "", "a connection pooler is in between: session state is not relied on, transaction mode works")
	}
	if !facts.Temporary {
		e.note("temporary tables", healthWarning, fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", pg.Ident(facts.Database), pg.Ident(facts.Role)),
			"role %s may not make them: checks with SQL, plan and the law check need them", facts.Role)
	}
	if !facts.Stats {
		e.note("statistics", healthWarning, "GRANT pg_read_all_stats TO "+pg.Ident(facts.Role), "role %s does not see other sessions: a promote may wait for readers that would not be harmed", facts.Role)
	}
	e.clock(facts.Now, began, took)
	return true
}

// clock compares the database's clock with ours in the middle of the question.
func (e *examination) clock(theirs, began time.Time, took time.Duration) {
	apart := theirs.Sub(began.Add(took / 2))
	if apart.Abs() > clockLimit+took {
		e.note("clock", healthWarning, "let both machines keep time with NTP", "the database's clock is %s away from this machine's", render.Duration(apart.Abs().Round(time.Millisecond)))
		return
	}
	e.note("clock", healthOK, "", "%s from the database's", render.Duration(apart.Abs().Round(time.Millisecond)))
}

// controlled looks at what needs the control schema: agents and jobs.
func (e *examination) controlled(ctx context.Context) {
	if err := pg.CheckSchema(ctx, e.pool); err != nil {
		e.failed(ctx, "control schema", err)
		return
	}
	e.note("control schema", healthOK, "", "%q is at version %d", e.pool.Schema(), pg.SchemaVersion)
	e.agents(ctx)
	store := reprocess.NewStore(e.pool)
	jobs, err := store.Jobs(ctx)
	if err != nil {
		e.failed(ctx, "jobs", err)
		return
	}
	e.schemas(ctx, jobs)
	for _, j := range jobs {
		e.retention(ctx, store, j)
	}
}

// agents counts those that are alive.
func (e *examination) agents(ctx context.Context) {
	n, err := agent.Alive(ctx, e.pool, aliveWithin)
	switch {
	case err != nil:
		e.failed(ctx, "agents", err)
	case n == 0:
		e.note("agents", healthFailed, "kappactl serve", "none is alive: nothing replays, follows the topics or promotes")
	default:
		e.note("agents", healthOK, "", "%d alive", n)
	}
}

// schemas asks whether version tables can be made beside every view, and beside those of jobs to come in public.
func (e *examination) schemas(ctx context.Context, jobs []reprocess.Status) {
	names := []string{"public"}
	for _, j := range jobs {
		if schema, _, found := strings.Cut(j.View, "."); found && !slices.Contains(names, schema) {
			names = append(names, schema)
		}
	}
	for _, name := range names {
		var may bool
		err := e.pool.QueryRow(ctx, `SELECT coalesce(has_schema_privilege(to_regnamespace(quote_ident(@name))::oid, 'USAGE, CREATE'), false)`, pgx.NamedArgs{"name": name}).Scan(&may)
		switch {
		case err != nil:
			e.failed(ctx, "schema "+name, err)
		case !may:
			e.note("schema "+name, healthFailed, fmt.Sprintf("GRANT USAGE, CREATE ON SCHEMA %s TO the role", pg.Ident(name)), "this role may not make tables in it; version tables live beside their view")
		default:
			e.note("schema "+name, healthOK, "", "tables can be made in it")
		}
	}
}

// retention compares what a live version covers with what the log still holds.
func (e *examination) retention(ctx context.Context, store *reprocess.Store, s reprocess.Status) {
	check := "log of " + string(s.Job)
	if s.Live == nil {
		return
	}
	if e.admin == nil {
		e.note(check, healthSkipped, "", "no broker answered")
		return
	}
	n, err := job.ParseNumber(*s.Live)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	ref := job.Ref{Job: s.Job, Number: n}
	spec, err := store.Spec(ctx, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	facts, err := e.admin.Topics(ctx, spec.Source.Topics)
	var missing *kafka.MissingTopicError
	if errors.As(err, &missing) {
		e.note(check, healthFailed, "kappactl status "+string(s.Job), "topic %s is gone", missing.Topic)
		return
	}
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	positions, err := speedlayer.Store{}.Positions(ctx, e.pool, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	e.compareLog(check, ref, facts, positions)
}

// compareLog notes what a new version could not replay any more.
func (e *examination) compareLog(check string, ref job.Ref, facts []job.TopicFacts, positions []job.Position) {
	covers := map[job.Partition]job.Position{}
	for _, p := range positions {
		covers[p.Partition] = p
	}
	lost, partitions := int64(0), 0
	for _, t := range facts {
		for _, p := range t.Partitions {
			at, known := covers[p.Partition]
			switch {
			case !known || p.Err != nil:
			case p.Start > at.Next:
				e.note(check, healthFailed, "kappactl status "+string(ref.Job), "%s is at offset %d of %s, and the log begins at %d: records are missing", ref, at.Next, p.Partition, p.Start)
				return
			case p.Start > at.CoversFrom:
				lost, partitions = lost+p.Start-at.CoversFrom, partitions+1
			}
		}
	}
	if partitions > 0 {
		e.note(check, healthWarning, "set serve.keep, keep the log for longer, or accept it at the deploy", "a new version would cover less than %s: %s of %s are no longer in the log",
			ref, render.Plural(lost, "offset"), render.Plural(int64(partitions), "partition"))
		return
	}
	e.note(check, healthOK, "", "holds all that %s covers", ref)
}
