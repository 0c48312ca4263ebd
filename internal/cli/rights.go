package cli

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/pg"
)

// rightsSQL is what a database administrator runs so that an agent, the commands and readers of the state work with no
// more rights than they need. The names of the roles are the reader's to change.
func rightsSQL(schema, viewSchema string) string {
	control, views := pg.Ident(schema), pg.Ident(viewSchema)
	return fmt.Sprintf(`-- Rights of kappactl, for its administrator to run after "kappactl init" and again after each upgrade of the control schema.
-- Names to change: the three roles, and %[2]s, the schema of the views (repeat its lines for each such schema).

CREATE ROLE kappactl_agent LOGIN;   -- kappactl serve: replays, follows, flips
CREATE ROLE kappactl_cli LOGIN;     -- deploy, promote, rollback, retire …: ask an agent, write no data; diff, plan, check
CREATE ROLE kappactl_reader LOGIN;  -- status, watch, wait, query, deadletter, verify: write nothing

DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %%I TO kappactl_agent, kappactl_cli, kappactl_reader', current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %%I TO kappactl_agent, kappactl_cli', current_database());
END $$;

-- The control schema.
GRANT USAGE ON SCHEMA %[1]s TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA %[1]s TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO kappactl_agent;
GRANT INSERT, UPDATE ON %[1]s.job, %[1]s.version, %[1]s.deployment, %[1]s.request, %[1]s.event TO kappactl_cli;
GRANT UPDATE (hold, hold_until, hold_by) ON %[1]s.position TO kappactl_cli; -- diff holds two versions at the same offsets for a moment

-- The schema of the views: the agent's role makes, owns and drops the version tables and the views there.
GRANT USAGE, CREATE ON SCHEMA %[2]s TO kappactl_agent;
GRANT USAGE ON SCHEMA %[2]s TO kappactl_cli, kappactl_reader;
-- verify and diff read the version tables themselves, which the agent will make.
ALTER DEFAULT PRIVILEGES FOR ROLE kappactl_agent IN SCHEMA %[2]s GRANT SELECT ON TABLES TO kappactl_cli, kappactl_reader;

-- For each table that kappactl adopt takes over, and each view over it: the agent acts as its owner, who will own the view.
-- GRANT table_owner TO kappactl_agent;
-- GRANT CREATE ON SCHEMA %[2]s TO table_owner;

-- Optional: without it a promote may wait for readers that it would not harm.
GRANT pg_read_all_stats TO kappactl_agent;
`, control, views)
}

// commented turns SQL into SQL comments.
func commented(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			line = strings.TrimRight("-- "+line, " \n") + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
