-- Rights of kappactl. Run it after "kappactl init" and again after each upgrade of the control schema, with psql -1: it can be
-- run any number of times. Run it as a superuser, or, on a managed PostgreSQL, as a role with CREATEROLE that owns the database,
-- the control schema and the schema of the views.
-- Names to change: the three roles, and "public", the schema of the views (repeat its lines for each such schema).

-- kappactl_agent: kappactl serve. It replays, follows and flips.
-- kappactl_cli: deploy, promote, rollback, retire and their like ask an agent; diff, plan and check. It writes the rows of jobs and
--   versions, from which agents build their statements: give it to those whom you trust with the tables that agents write.
-- kappactl_reader: status, watch, wait, query, deadletter, verify. It writes nothing and reads the rows, dead letters and job
--   files of all jobs.
-- The roles get no password here: ALTER ROLE kappactl_agent PASSWORD '…', or psql's \password, or a client certificate.
DO $$ DECLARE role text; BEGIN
    FOREACH role IN ARRAY ARRAY['kappactl_agent', 'kappactl_cli', 'kappactl_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
    END LOOP;
    -- Without a superuser: default privileges of a role are set by its members. PostgreSQL 16 and newer give the role that
    -- creates another only the right to grant it.
    IF NOT pg_has_role(current_user, 'kappactl_agent', 'USAGE') THEN
        EXECUTE format('GRANT kappactl_agent TO %I', current_user);
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO kappactl_agent, kappactl_cli, kappactl_reader', current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO kappactl_agent, kappactl_cli', current_database());
END $$;

-- The control schema.
GRANT USAGE ON SCHEMA "kappactl" TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA "kappactl" TO kappactl_agent, kappactl_cli, kappactl_reader;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "kappactl" TO kappactl_agent;
REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "kappactl" FROM kappactl_cli;
GRANT INSERT, UPDATE ON "kappactl".job, "kappactl".version TO kappactl_cli;
-- History, requests and deployments note session_user in session_role, which this role cannot write, and it changes no history.
GRANT INSERT (job, number, deployment, kind, message, detail, by) ON "kappactl".event TO kappactl_cli;
GRANT INSERT (job, number, verb, args, by) ON "kappactl".request TO kappactl_cli;
GRANT INSERT (job, number, previous, flip_only, until, promote, state, options, created_by),
    UPDATE (previous, flip_only, until, promote, state, state_since, options, claim, owner, lease, promoted_at, observe_until,
        exit_code, message, next_command, ended_at)
    ON "kappactl".deployment TO kappactl_cli;
GRANT UPDATE (hold, hold_until, hold_by) ON "kappactl".position TO kappactl_cli; -- diff holds two versions at the same offsets for a moment
GRANT UPDATE (paused_at, paused_by, late_since, since, next_at) ON "kappactl".schedule TO kappactl_cli; -- schedule pause and resume
GRANT DELETE ON "kappactl".assignment, "kappactl".reward TO kappactl_cli; -- ab forget

-- For each application that is part of an experiment: it names its subjects in a transaction, and records that they were exposed. Readers of
-- the views need nothing here: any role may set kappactl.subject, so an experiment is no barrier between readers and data.
-- GRANT USAGE ON SCHEMA "kappactl" TO application;
-- GRANT EXECUTE ON FUNCTION "kappactl".expose(text, text), "kappactl".set_subject(text) TO application;

-- The schema of the views: the agent's role makes, owns and drops the version tables and the views there.
GRANT USAGE, CREATE ON SCHEMA "public" TO kappactl_agent;
GRANT USAGE ON SCHEMA "public" TO kappactl_cli, kappactl_reader;
-- verify and diff read the version tables themselves, which the agent will make.
ALTER DEFAULT PRIVILEGES FOR ROLE kappactl_agent IN SCHEMA "public" GRANT SELECT ON TABLES TO kappactl_cli, kappactl_reader;

-- For each table that kappactl adopt takes over, and each view over it: the agent acts as its owner, who will own the view;
-- diff and verify read the table.
-- GRANT table_owner TO kappactl_agent;
-- GRANT CREATE ON SCHEMA "public" TO table_owner;
-- GRANT SELECT ON "public".adopted_table TO kappactl_cli, kappactl_reader;

-- Optional. pg_read_all_stats: without it a promote may wait for readers that it would not harm. pg_read_all_settings: without it
-- plan and deploy do not see how full the disk is; with it they see it only when they run on the machine of PostgreSQL.
-- On PostgreSQL 16 and newer only a superuser or a role with ADMIN OPTION on them grants these two.
DO $$ BEGIN
    GRANT pg_read_all_stats TO kappactl_agent;
    GRANT pg_read_all_settings TO kappactl_agent, kappactl_cli;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'not granted: pg_read_all_stats, pg_read_all_settings: %', SQLERRM;
END $$;
