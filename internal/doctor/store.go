package doctor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// serverFacts holds facts about the server and our session.
type serverFacts struct {
	Version   int
	Printed   string
	Database  string
	Role      string
	Agents    bool   `db:"-"` // the role is that of the agents, or none has been there yet
	Agent     string `db:"-"` // the role of the agents; empty when it is not known
	Asks      bool   `db:"-"` // the role may ask agents for something
	Temporary bool   // may make temporary tables
	Stats     bool   // may see other sessions
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

const selectServer = `SELECT current_setting('server_version_num')::integer AS version,
	current_setting('server_version') AS printed,
	current_database()::text AS database, current_user::text AS role, has_database_privilege(current_database(),
	'TEMPORARY') AS temporary,
	pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS stats, pg_backend_pid()::bigint AS pid, clock_timestamp() AS
	now,
	current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby,
	current_setting('default_transaction_read_only')::boolean AS unwritable,
	current_setting('synchronous_commit') = 'off' AS relaxed, current_setting('statement_timeout') AS statement,
	coalesce(current_setting('transaction_timeout', true), '0') AS transaction`

// readServer reads the facts, and whether the connection goes to the server without a pooler in between.
func readServer(ctx context.Context, pool *pg.Pool) (facts serverFacts, direct bool, err error) {
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
	return facts, direct, err
}

// selectUse finds how our role may use the control schema: as an agent, as a client that makes requests, or read-only.
const selectUse = `SELECT coalesce(pg_has_role(current_user, a.oid, 'USAGE'), true) AS agents, coalesce(a.rolname, '')
	AS agent,
	has_any_column_privilege('kappactl.request', 'INSERT') AS asks
	FROM (SELECT) AS one LEFT JOIN (SELECT r.oid, r.rolname FROM kappactl.agent g JOIN pg_roles r ON r.rolname = g.role
		ORDER BY g.draining, g.heartbeat_at DESC LIMIT 1) AS a ON true`

// readUse fills Agents, Agent and Asks. Without a control schema the role may become any of them.
func readUse(ctx context.Context, pool *pg.Pool, facts *serverFacts) {
	err := pool.QueryRow(ctx, selectUse, pgx.NamedArgs{}).Scan(&facts.Agents, &facts.Agent, &facts.Asks)
	if err != nil {
		facts.Agents, facts.Agent, facts.Asks = true, "", true
	}
}

// checksFacts holds the rights of checks.role, and of our role on it.
type checksFacts struct {
	Known     bool
	Member    bool   // our role may take it
	Temporary bool   // it may make temporary objects
	Language  bool   // it may make functions in PL/pgSQL
	Role      string // ours
	Database  string
}

const selectChecksRole = `SELECT r.oid IS NOT NULL AS known, coalesce(pg_has_role(current_user, r.oid, 'MEMBER'), false)
	AS member,
	coalesce(has_database_privilege(r.oid, current_database(), 'TEMPORARY'), false) AS temporary,
	coalesce((SELECT has_language_privilege(r.oid, l.oid, 'USAGE') FROM pg_language l
	WHERE l.lanname = 'plpgsql'), false) AS language,
	current_user::text AS role, current_database()::text AS database
	FROM (SELECT) AS one LEFT JOIN pg_roles r ON r.rolname = @role`

func readChecksRole(ctx context.Context, pool *pg.Pool, role string) (checksFacts, error) {
	rows, err := pool.Query(ctx, selectChecksRole, pgx.NamedArgs{"role": role})
	if err != nil {
		return checksFacts{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[checksFacts])
}

const selectSchema = `SELECT (SELECT has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE')
	FROM pg_namespace n WHERE n.nspname = @name), current_user::text`

// readSchema reads whether our role may make tables in a schema; nil: there is no such schema.
func readSchema(ctx context.Context, pool *pg.Pool, name string) (may *bool, role string, err error) {
	err = pool.QueryRow(ctx, selectSchema, pgx.NamedArgs{"name": name}).Scan(&may, &role)
	return may, role, err
}
