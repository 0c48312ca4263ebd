-- Rights of kappactl, for its administrator to run after "kappactl init" and again after each upgrade of the control schema.
-- Names to change: the three roles, and "public", the schema of the views (repeat its lines for each such schema).

CREATE ROLE kappactl_agent LOGIN;   -- kappactl serve: replays, follows, flips
CREATE ROLE kappactl_cli LOGIN;     -- deploy, promote, rollback, retire …: ask an agent, write no data; diff, plan, check
CREATE ROLE kappactl_reader LOGIN;  -- status, watch, wait, query, deadletter, verify: write nothing

DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO kappactl_agent, kappactl_cli, kappactl_reader', current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO kappactl_agent, kappactl_cli', current_database());
END $$;

-- The control schema.
GRANT USAGE ON SCHEMA "kappactl" TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA "kappactl" TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "kappactl" TO kappactl_agent;
GRANT INSERT, UPDATE ON "kappactl".job, "kappactl".version, "kappactl".deployment, "kappactl".request, "kappactl".event TO kappactl_cli;
GRANT UPDATE (hold, hold_until, hold_by) ON "kappactl".position TO kappactl_cli; -- diff holds two versions at the same offsets for a moment

-- The schema of the views: the agent's role makes, owns and drops the version tables and the views there.
GRANT USAGE, CREATE ON SCHEMA "public" TO kappactl_agent;
GRANT USAGE ON SCHEMA "public" TO kappactl_cli, kappactl_reader;
-- verify and diff read the version tables themselves, which the agent will make.
ALTER DEFAULT PRIVILEGES FOR ROLE kappactl_agent IN SCHEMA "public" GRANT SELECT ON TABLES TO kappactl_cli, kappactl_reader;

-- For each table that kappactl adopt takes over, and each view over it: the agent acts as its owner, who will own the view.
-- GRANT table_owner TO kappactl_agent;
-- GRANT CREATE ON SCHEMA "public" TO table_owner;

-- Optional: without it a promote may wait for readers that it would not harm.
GRANT pg_read_all_stats TO kappactl_agent;
