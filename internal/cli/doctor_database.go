package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// clockLimit is how far the clocks of this machine and the database may be apart before lags and leases are odd.
const clockLimit = 2 * time.Second

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
	settings
}

// settings are what a server, a database or a role sets for each session and what our work depends on.
type settings struct {
	Encoding    string
	Standby     bool
	Unwritable  bool   // transactions begin read-only
	Relaxed     bool   // a commit is answered before it is on the disk
	Statement   string // timeouts; "0" is none
	Transaction string // from release 17 on
}

const selectServer = `SELECT current_setting('server_version_num')::integer AS version, current_setting('server_version') AS printed,
	current_database()::text AS database, current_user::text AS role, has_database_privilege(current_database(), 'TEMPORARY') AS temporary,
	pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS stats, pg_backend_pid()::bigint AS pid, clock_timestamp() AS now,
	current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only')::boolean AS unwritable,
	current_setting('synchronous_commit') = 'off' AS relaxed, current_setting('statement_timeout') AS statement,
	coalesce(current_setting('transaction_timeout', true), '0') AS transaction`

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
	e.server(facts, direct)
	e.checks(ctx)
	e.clock(facts.Now, began, took)
	return true
}

// server notes what the server is, what is between it and us, and what the role lacks.
func (e *examination) server(facts serverFacts, direct bool) {
	var unsuitable *pg.ServerError
	if errors.As(pg.JudgeServer(facts.Version, facts.Printed, facts.Encoding, facts.Database), &unsuitable) {
		e.note("database", healthFailed, unsuitable.Cure, "%s", unsuitable.Cause)
	} else {
		e.note("database", healthOK, "", "PostgreSQL %s, database %s, role %s", facts.Printed, facts.Database, facts.Role)
	}
	e.sessions(facts)
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
}

// checksFacts is what checks.role, and our role with it, may do.
type checksFacts struct {
	Known     bool
	Member    bool   // our role may take it
	Temporary bool   // it may make temporary objects
	Language  bool   // it may make functions in PL/pgSQL
	Role      string // ours
	Database  string
}

const selectChecksRole = `SELECT r.oid IS NOT NULL AS known, coalesce(pg_has_role(current_user, r.oid, 'MEMBER'), false) AS member,
	coalesce(has_database_privilege(r.oid, current_database(), 'TEMPORARY'), false) AS temporary,
	coalesce((SELECT has_language_privilege(r.oid, l.oid, 'USAGE') FROM pg_language l WHERE l.lanname = 'plpgsql'), false) AS language,
	current_user::text AS role, current_database()::text AS database
	FROM (SELECT) AS one LEFT JOIN pg_roles r ON r.rolname = @role`

// checks looks at the role that checks run as, when the settings have one.
func (e *examination) checks(ctx context.Context) {
	const check = "role of checks"
	if e.settings.Checks.Role == "" {
		return
	}
	rows, err := e.pool.Query(ctx, selectChecksRole, pgx.NamedArgs{"role": e.settings.Checks.Role})
	var facts checksFacts
	if err == nil {
		facts, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[checksFacts])
	}
	role := pg.Ident(e.settings.Checks.Role)
	switch {
	case err != nil:
		e.failed(ctx, check, err)
	case !facts.Known:
		e.note(check, healthFailed, fmt.Sprintf("CREATE ROLE %s; GRANT %[1]s TO the role of the agents", role), "%s does not exist: no check has an answer", role)
	case !facts.Temporary:
		e.note(check, healthFailed, fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", pg.Ident(facts.Database), role), "%s may make no temporary objects, in which checks run: no check has an answer", role)
	case !facts.Language:
		e.note(check, healthFailed, "GRANT USAGE ON LANGUAGE plpgsql TO "+role, "%s may not use the language of the function that checks run in: no check has an answer", role)
	case !facts.Member:
		e.note(check, healthWarning, fmt.Sprintf("when agents use this role: GRANT %s TO %s", role, pg.Ident(facts.Role)), "role %s may not take it", pg.Ident(facts.Role))
	default:
		e.note(check, healthOK, "", "checks run as %s", role)
	}
}

// sessions notes what is set for the sessions of the role and stands in the way.
func (e *examination) sessions(facts serverFacts) {
	set := func(name, value string) string {
		return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s = %s", pg.Ident(facts.Role), pg.Ident(facts.Database), name, value)
	}
	switch {
	case facts.Standby:
		e.note("writes", healthFailed, "connect to the primary: target_session_attrs=read-write in the connection string finds it", "the server is a standby and takes none")
	case facts.Unwritable:
		e.note("writes", healthFailed, set("default_transaction_read_only", "off"), "sessions of role %s are read-only", facts.Role)
	}
	if facts.Relaxed {
		e.note("durability", healthWarning, set("synchronous_commit", "on"),
			"synchronous_commit is off: a crash of the server takes back what it answered in the last moment. Tables and positions go back together and are read on from there; a promote may be undone")
	}
	for _, t := range [][2]string{{"statement_timeout", facts.Statement}, {"transaction_timeout", facts.Transaction}} {
		if t[1] != "0" {
			e.note("timeouts", healthWarning, set(t[0], "0"),
				"%s is %s for role %s: what fills a table and makes its indexes is exempt, but not diffs, and not indexes that are made beside live writers", t[0], t[1], facts.Role)
		}
	}
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

// agents counts those that are alive, and compares their hooks.
func (e *examination) agents(ctx context.Context) {
	living, err := agent.Roster(ctx, e.pool, aliveWithin)
	switch {
	case err != nil:
		e.failed(ctx, "agents", err)
	case len(living) == 0:
		e.note("agents", healthFailed, "kappactl serve", "none is alive: nothing replays, follows the topics or promotes")
	default:
		e.note("agents", healthOK, "", "%d alive", len(living))
		e.hooks(living)
	}
}

// hooks says whether the agents would tell, and ask, the same programs and addresses.
func (e *examination) hooks(living []agent.Living) {
	const check = "hooks"
	names := map[string]string{}
	for _, one := range living {
		maps.Copy(names, one.Hooks)
	}
	switch apart := unlike(living); {
	case len(apart) > 0:
		e.note(check, healthWarning, sameHooks, "agents have different ones, so it depends on the agent who is asked and told: %s", strings.Join(apart, "; "))
	case len(names) == 0:
		e.note(check, healthOK, "", "none")
	default:
		e.note(check, healthOK, "", "%s, the same on every agent", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}

// sameHooks is what to do about agents whose hooks differ.
const sameHooks = "give every agent the same agent.hooks and agent.webhooks, and restart those that lack them"

// schemas asks whether version tables can be made beside every view, and beside those of jobs to come in public. Agents need
// that; other roles do not, so it is no failure.
func (e *examination) schemas(ctx context.Context, jobs []reprocess.Status) {
	names := []string{"public"}
	for _, j := range jobs {
		if !slices.Contains(names, j.ViewName.Schema) {
			names = append(names, j.ViewName.Schema)
		}
	}
	for _, name := range names {
		var may *bool
		var role string
		err := e.pool.QueryRow(ctx, `SELECT (SELECT has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n WHERE n.nspname = @name),
			current_user::text`, pgx.NamedArgs{"name": name}).Scan(&may, &role)
		switch {
		case err != nil:
			e.failed(ctx, "schema "+name, err)
		case may == nil:
			e.note("schema "+name, healthWarning, "CREATE SCHEMA "+pg.Ident(name), "it does not exist; version tables live beside their view")
		case !*may:
			e.note("schema "+name, healthWarning, fmt.Sprintf("when agents use this role: GRANT USAGE, CREATE ON SCHEMA %s TO %s", pg.Ident(name), pg.Ident(role)),
				"role %s may not make tables in it; version tables live beside their view, and agents make them", role)
		default:
			e.note("schema "+name, healthOK, "", "tables can be made in it")
		}
	}
}
