-- +goose Up

-- written by reprocess: how far behind a deployment's version was, the older the further apart; at most about 500 points each
CREATE TABLE kappactl.lag_point (
    deployment         bigint NOT NULL REFERENCES kappactl.deployment (id) ON DELETE CASCADE,
    at                 timestamptz NOT NULL DEFAULT clock_timestamp(),
    phase              text NOT NULL,
    position           bigint,                -- sums of offsets over the partitions
    end_offset         bigint,
    lag_records        bigint,
    lag_seconds        double precision,      -- of the partition that is furthest behind
    records_per_second double precision,
    PRIMARY KEY (deployment, at)
);

-- written by internal/hooks: the hooks of the agents' settings, and the first event that each is told of
CREATE TABLE kappactl.hook (
    name  text PRIMARY KEY,
    since bigint NOT NULL,                    -- id of an event: those above it are looked at
    at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- written by internal/hooks: an event that a hook is to be told of
CREATE TABLE kappactl.delivery (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event       bigint NOT NULL,
    hook        text NOT NULL,
    told        text NOT NULL,                -- job.HookEvent
    state       text NOT NULL DEFAULT 'due',  -- due, done or given up
    tries       integer NOT NULL DEFAULT 0,
    owner       text,
    due_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at timestamptz,
    answer      text NOT NULL DEFAULT '',     -- of the last try
    UNIQUE (event, hook)
);
CREATE INDEX delivery_due ON kappactl.delivery (due_at) WHERE state = 'due';

UPDATE kappactl.schema_info SET version = greatest(version, 9);

-- +goose Down
SELECT 1;
