package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/compare"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// clockLimit is how far the clocks of this machine and the database may be apart before lags and leases are odd.
const clockLimit = 2 * time.Second

// database opens the database and examines the server, the role, the connection and the clock.
func (e *examination) database(ctx context.Context) bool {
	const check = "database"
	short, cancel := context.WithTimeoutCause(ctx, patience, e.TimeLimit)
	defer cancel()
	pool, err := e.Database(short, e.settings)
	if err != nil {
		e.failed(ctx, check, err)
		return false
	}
	e.pool = pool
	began := e.Now()
	facts, direct, err := readServer(ctx, pool)
	if err != nil {
		e.failed(ctx, check, err)
		return false
	}
	took := e.Now().Sub(began)
	readUse(ctx, pool, &facts)
	e.facts = facts
	e.server(facts, direct)
	e.encryption(ctx)
	e.checks(ctx)
	e.clock(facts.Now, began, took)
	return true
}

// server notes what the server is, what is between it and us, and what the role lacks.
func (e *examination) server(facts serverFacts, direct bool) {
	var unsuitable *pg.ServerError
	if errors.As(pg.JudgeServer(facts.Version, facts.Printed, facts.Encoding, facts.Database), &unsuitable) {
		e.note("database", Failed, unsuitable.Cure, "%s", unsuitable.Cause)
	} else {
		e.note("database", OK, "", "PostgreSQL %s, database %s, role %s", facts.Printed, facts.Database, facts.Role)
	}
	e.sessions(facts)
	if direct {
		e.note("pooler", OK, "", "none in between")
	} else {
		e.note("pooler", OK, "", "a connection pooler is in between: session state is not relied on, transaction mode works")
	}
	switch {
	case !facts.Temporary && !facts.Asks:
		e.note("temporary tables", OK, "", "role %s may not make them and needs none: it only reads", facts.Role)
	case !facts.Temporary:
		e.note("temporary tables", Warning,
			fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", pg.Ident(facts.Database), pg.Ident(facts.Role)),
			"role %s may not make them: checks with SQL, plan and the merge check need them", facts.Role)
	}
	switch {
	case facts.Stats:
	case !facts.Agents:
		e.note("statistics", OK, "", "role %s does not see other sessions; only agents, role %s, need that", facts.Role,
			facts.Agent)
	default:
		e.note("statistics", Warning, "GRANT pg_read_all_stats TO "+pg.Ident(facts.Role),
			"role %s does not see other sessions: a promote may wait for readers that would not be harmed", facts.Role)
	}
}

// checks examines the role that checks run as, when the settings have one.
func (e *examination) checks(ctx context.Context) {
	const check = "role of checks"
	if e.settings.Checks.Role == "" {
		return
	}
	facts, err := readChecksRole(ctx, e.pool, e.settings.Checks.Role)
	role := pg.Ident(e.settings.Checks.Role)
	switch {
	case err != nil:
		e.failed(ctx, check, err)
	case !facts.Known:
		e.note(check, Failed, fmt.Sprintf("CREATE ROLE %s; GRANT %[1]s TO the role of the agents", role),
			"%s does not exist: no check has an answer", role)
	case !facts.Temporary:
		e.note(check, Failed, fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", pg.Ident(facts.Database), role),
			"%s may make no temporary objects, in which checks run: no check has an answer", role)
	case !facts.Language:
		e.note(check, Failed, "GRANT USAGE ON LANGUAGE plpgsql TO "+role,
			"%s may not use the language of the function that checks run in: no check has an answer", role)
	case !facts.Member:
		e.note(check, Warning, fmt.Sprintf("when agents use this role: GRANT %s TO %s", role, pg.Ident(facts.Role)),
			"role %s may not take it", pg.Ident(facts.Role))
	default:
		e.note(check, OK, "", "checks run as %s", role)
	}
}

// sessions notes settings of the role's sessions that get in the way.
func (e *examination) sessions(facts serverFacts) {
	set := func(name, value string) string {
		return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET %s = %s", pg.Ident(facts.Role), pg.Ident(facts.Database), name,
			value)
	}
	switch {
	case facts.Standby:
		e.note("writes", Failed, "connect to the primary: target_session_attrs=read-write in the connection string finds it",
			"the server is a standby and takes none")
	case facts.Unwritable:
		e.note("writes", Failed, set("default_transaction_read_only", "off"), "sessions of role %s are read-only", facts.Role)
	}
	if facts.Relaxed {
		e.note("durability", Warning, set("synchronous_commit", "on"),
			"synchronous_commit is off: a crash of the server takes back what it answered in the last moment. Tables and "+
				"positions go back together and are read on from there; a promote may be undone")
	}
	for _, t := range [][2]string{{"statement_timeout", facts.Statement}, {"transaction_timeout", facts.Transaction}} {
		if t[1] != "0" {
			e.note("timeouts", Warning, set(t[0], "0"),
				"%s is %s for role %s: what fills a table and makes its indexes is exempt, but not diffs, and not indexes that "+
					"are made beside live writers", t[0], t[1], facts.Role)
		}
	}
}

// clock compares the database's clock with ours in the middle of the question.
func (e *examination) clock(theirs, began time.Time, took time.Duration) {
	apart := theirs.Sub(began.Add(took / 2))
	if apart.Abs() > clockLimit+took {
		e.note("clock", Warning, "let both machines keep time with NTP",
			"the database's clock is %s away from this machine's", render.Duration(apart.Abs().Round(time.Millisecond)))
		return
	}
	e.note("clock", OK, "", "%s from the database's", render.Duration(apart.Abs().Round(time.Millisecond)))
}

// schemas asks whether version tables can be made beside every view, and beside those of jobs to come in public. Agents
// need that; other roles do not, so it is no failure.
func (e *examination) schemas(ctx context.Context, jobs []status.Job) {
	names := []string{"public"}
	for _, j := range jobs {
		if !slices.Contains(names, j.ViewName.Schema) {
			names = append(names, j.ViewName.Schema)
		}
	}
	for _, name := range names {
		may, role, err := readSchema(ctx, e.pool, name)
		switch {
		case err != nil:
			e.failed(ctx, "schema "+name, err)
		case may == nil:
			e.note("schema "+name, Warning, "CREATE SCHEMA "+pg.Ident(name),
				"it does not exist; version tables live beside their view")
		case !*may && !e.facts.Agents:
			e.note("schema "+name, OK, "", "role %s may not make tables in it; only agents, role %s, need that", role,
				e.facts.Agent)
		case !*may:
			e.note("schema "+name, Warning, fmt.Sprintf("when agents use this role: GRANT USAGE, CREATE ON SCHEMA %s TO %s",
				pg.Ident(name), pg.Ident(role)),
				"role %s may not make tables in it; version tables live beside their view, and agents make them", role)
		default:
			e.note("schema "+name, OK, "", "tables can be made in it")
		}
	}
}

// leftovers warns of schemas that a killed comparison could not drop.
func (e *examination) leftovers(ctx context.Context) {
	names, err := compare.Leftovers(ctx, e.pool)
	switch {
	case err != nil:
		e.failed(ctx, "leftovers", err)
	case len(names) > 0:
		drop := make([]string, len(names))
		for i, name := range names {
			drop[i] = "DROP SCHEMA " + pg.Ident(name) + " CASCADE;"
		}
		e.note("leftovers", Warning, strings.Join(drop, " "), "kappactl compare was killed and left %s",
			render.Plural(int64(len(names)), "schema"))
	}
}
