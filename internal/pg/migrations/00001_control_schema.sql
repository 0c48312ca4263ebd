-- +goose Up

-- The release that wrote this schema and the oldest binary number that may still use it.
CREATE TABLE kappactl.schema_info (
    singleton     boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version       integer NOT NULL,
    oldest_reader integer NOT NULL,
    release       text    NOT NULL DEFAULT ''
);
INSERT INTO kappactl.schema_info (version, oldest_reader) VALUES (1, 1);

-- written by internal/agent
CREATE TABLE kappactl.agent (
    id           text PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    release      text NOT NULL,
    http         text NOT NULL DEFAULT '',
    capacity     integer NOT NULL,
    dialects     integer[] NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    draining     boolean NOT NULL DEFAULT false
);

-- written by reprocess
CREATE TABLE kappactl.job (
    name        text PRIMARY KEY,
    team        text NOT NULL DEFAULT '',
    cluster_id  text NOT NULL DEFAULT '',          -- Kafka's cluster id
    view_schema text NOT NULL,
    view_name   text NOT NULL,
    live        integer,                           -- number of the version that the view reads
    next_number integer NOT NULL DEFAULT 1,
    contract    jsonb,                             -- ordered view columns (type, collation), view options, owner, grants
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (view_schema, view_name)
);

CREATE TABLE kappactl.version (
    job            text NOT NULL REFERENCES kappactl.job (name) ON DELETE CASCADE,
    number         integer NOT NULL,
    hash           text NOT NULL,
    spec           jsonb NOT NULL,
    layout         jsonb NOT NULL,
    file           text NOT NULL DEFAULT '',       -- the job file's text
    dialect        integer NOT NULL,
    engine         text NOT NULL,
    lanes          smallint NOT NULL DEFAULT 1 CHECK (lanes > 0),
    phase          text NOT NULL,
    phase_since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at      timestamptz,
    pinned_at      timestamptz,
    verdict        text NOT NULL DEFAULT 'unknown',
    reason         text NOT NULL DEFAULT '',
    verdict_since  timestamptz NOT NULL DEFAULT clock_timestamp(),
    frozen_at      timestamptz,
    built_xid      xid8,
    standby_until  timestamptz,
    rolled_back_at timestamptz,                    -- its hash needs --again from here on
    stale_since    timestamptz,
    expired_before timestamptz,                    -- rows with an older time key were deleted (serve.keep)
    exit_code      smallint,                       -- of a failed or aborted one
    error          text NOT NULL DEFAULT '',
    git_revision   text NOT NULL DEFAULT '',
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at       timestamptz,
    PRIMARY KEY (job, number)
);
CREATE INDEX version_phase ON kappactl.version (phase);

CREATE TABLE kappactl.deployment (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job              text NOT NULL,
    number           integer NOT NULL,
    previous         integer,                      -- the live version seen at stage
    flip_only        boolean NOT NULL DEFAULT false,
    until            text NOT NULL DEFAULT '',
    promote          text NOT NULL,
    state            text NOT NULL,
    state_since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    options          jsonb NOT NULL DEFAULT '{}',
    claim            bigint NOT NULL DEFAULT 0,
    owner            text,
    lease            timestamptz,
    promoted_at      timestamptz,
    observe_until    timestamptz,
    exit_code        smallint,
    message          text NOT NULL DEFAULT '',
    next_command     text NOT NULL DEFAULT '',
    created_by       text NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at         timestamptz,
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);
CREATE INDEX deployment_version ON kappactl.deployment (job, number, id DESC);
CREATE UNIQUE INDEX deployment_one_rolling_out ON kappactl.deployment (job) WHERE state = 'rolling_out';

CREATE TABLE kappactl.request (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text NOT NULL REFERENCES kappactl.job (name) ON DELETE CASCADE,
    number       integer NOT NULL,
    verb         text NOT NULL,
    args         jsonb NOT NULL DEFAULT '{}',
    by           text NOT NULL DEFAULT '',
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    answered_at  timestamptz,
    answer       text NOT NULL DEFAULT '',
    next_command text NOT NULL DEFAULT '',
    exit_code    smallint
);
CREATE INDEX request_open ON kappactl.request (id) WHERE answered_at IS NULL;

CREATE TABLE kappactl.event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    job        text NOT NULL,
    number     integer,
    deployment bigint,
    kind       text NOT NULL,
    message    text NOT NULL DEFAULT '',
    detail     jsonb NOT NULL DEFAULT '{}',
    by         text NOT NULL DEFAULT ''
);
CREATE INDEX event_job ON kappactl.event (job, id);

CREATE TABLE kappactl.observation (
    job              text NOT NULL,
    number           integer NOT NULL,
    topic_id         uuid NOT NULL,
    topic            text NOT NULL,
    partition        integer NOT NULL,
    sampled_at       timestamptz NOT NULL,
    log_start        bigint,
    last_stable      bigint,
    end_offset       bigint,
    position         bigint,
    lag_records      bigint,
    lag_seconds      double precision,
    record_time      timestamptz,
    read_rate        double precision,            -- records a second
    produce_rate     double precision,
    verdict          text NOT NULL,
    reason           text NOT NULL DEFAULT '',
    since            timestamptz NOT NULL,
    PRIMARY KEY (job, number, topic_id, partition)
) WITH (fillfactor = 50);

-- written by speedlayer
CREATE TABLE kappactl.position (
    job          text NOT NULL,
    number       integer NOT NULL,
    topic_id     uuid NOT NULL,
    topic        text NOT NULL,
    partition    integer NOT NULL,
    next         bigint NOT NULL,                  -- the next offset to read
    leader_epoch integer NOT NULL DEFAULT -1,
    record_time  timestamptz,                      -- timestamp of the newest record processed
    covers_from  bigint NOT NULL,                  -- the first offset whose effect is in the table
    frozen_end   bigint NOT NULL,                  -- segments cover [covers_from, frozen_end)
    records      bigint NOT NULL DEFAULT 0,
    dead_letters bigint NOT NULL DEFAULT 0,
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    hold         bigint,                           -- the commit may not pass it before hold_until
    hold_until   timestamptz,
    hold_by      text,
    fault        text NOT NULL DEFAULT '',         -- gap | recreated | missing | query | too_large, and what follows
    fault_detail text NOT NULL DEFAULT '',
    fault_from   bigint,
    fault_to     bigint,
    PRIMARY KEY (job, number, topic_id, partition),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE TABLE kappactl.segment (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text NOT NULL,
    number       integer NOT NULL,
    topic_id     uuid NOT NULL,
    topic        text NOT NULL,
    partition    integer NOT NULL,
    from_offset  bigint NOT NULL,
    to_offset    bigint NOT NULL,
    source       text NOT NULL DEFAULT 'log' CHECK (source IN ('log', 'archive')),
    state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'claimed', 'done', 'failed')),
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    deadline     timestamptz,                      -- when retention is expected to delete it
    rows         bigint,                           -- staged rows
    records      bigint NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0,
    dead_letters bigint NOT NULL DEFAULT 0,
    record_time  timestamptz,
    leader_epoch integer NOT NULL DEFAULT -1,
    timings      jsonb NOT NULL DEFAULT '{}',      -- seconds by step
    attempts     integer NOT NULL DEFAULT 0,
    error        text NOT NULL DEFAULT '',
    fault        text NOT NULL DEFAULT '',
    fault_from   bigint,
    fault_to     bigint,
    done_at      timestamptz,
    CHECK (from_offset < to_offset),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);
CREATE INDEX segment_version ON kappactl.segment (job, number, topic_id, partition, from_offset);

CREATE TABLE kappactl.dead_letter (
    job         text NOT NULL,
    number      integer NOT NULL,
    topic_id    uuid NOT NULL,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    "offset"    bigint NOT NULL,
    record_time timestamptz,
    reason      text NOT NULL,
    detail      text NOT NULL DEFAULT '',
    key         bytea,
    payload     bytea,                             -- the first bytes of the value
    size        bigint NOT NULL DEFAULT 0,         -- bytes of the whole value
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, number, topic_id, partition, "offset"),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);

CREATE TABLE kappactl.accepted_gap (
    job         text NOT NULL,
    number      integer NOT NULL,
    topic_id    uuid NOT NULL,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset   bigint NOT NULL,
    by          text NOT NULL DEFAULT '',
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, number, topic_id, partition, from_offset)
);

-- +goose Down
SELECT 1;
