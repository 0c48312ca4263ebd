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
    draining     boolean NOT NULL DEFAULT false,
    hooks        jsonb,                            -- digests of the hooks in its settings, by name
    programs     text[] NOT NULL DEFAULT '{}',     -- patterns of the programs that it runs (agent.programs)
    role         text NOT NULL DEFAULT current_user -- PostgreSQL's role that it works as
);

-- written by reprocess, as are the tables down to dropped_job. A reason is a code and its arguments,
-- {"code": …, "args": {…}}; {} is none.
CREATE TABLE kappactl.job (
    name        text PRIMARY KEY,
    team        text NOT NULL DEFAULT '',
    cluster_id  text NOT NULL DEFAULT '',          -- Kafka's cluster id
    view_schema text NOT NULL,
    view_name   text NOT NULL,
    live        integer,                           -- number of the version that the view reads
    next_number integer NOT NULL DEFAULT 1,
    contract    jsonb,                             -- columns (type, collation), options, owner and grants of the view
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropping_at timestamptz,                       -- drop is under way
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
    phase          text NOT NULL,
    phase_since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at      timestamptz,
    pinned_at      timestamptz,
    verdict        text NOT NULL DEFAULT 'unknown',
    reason         jsonb NOT NULL DEFAULT '{}',    -- of the verdict
    verdict_since  timestamptz NOT NULL DEFAULT clock_timestamp(),
    frozen_at      timestamptz,
    built_xid      xid8,
    standby_until  timestamptz,
    rolled_back_at timestamptz,                    -- its hash needs --again from here on
    stale_since    timestamptz,
    expired_before timestamptz,                    -- rows with an older time key were deleted (serve.keep)
    exit_code      smallint,                       -- of a failed or aborted one
    error          jsonb NOT NULL DEFAULT '{}',    -- reason of a failed or aborted one
    git_revision   text NOT NULL DEFAULT '',
    created_by     text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at       timestamptz,
    keep_table     boolean NOT NULL DEFAULT false, -- its table stays when the version ends
    warnings       jsonb NOT NULL DEFAULT '[]',    -- reasons: what a person should know of it
    session_role   text NOT NULL DEFAULT session_user, -- PostgreSQL's role of who wrote the job file; see version_author
    PRIMARY KEY (job, number)
);
CREATE INDEX version_phase ON kappactl.version (phase);

-- The SQL of a job file may reach no more than its author: whoever writes it last is noted, whatever the statement says.
-- +goose StatementBegin
CREATE FUNCTION kappactl.version_author() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.session_role := session_user;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER version_author BEFORE INSERT OR UPDATE OF spec, layout, file, session_role ON kappactl.version
    FOR EACH ROW EXECUTE FUNCTION kappactl.version_author();

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
    message          jsonb NOT NULL DEFAULT '{}',  -- reason
    next_command     text NOT NULL DEFAULT '',
    created_by       text NOT NULL DEFAULT '',
    session_role text NOT NULL DEFAULT session_user,  -- PostgreSQL's role of who asked; the commands' role cannot write it
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at         timestamptz,
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);
CREATE INDEX deployment_version ON kappactl.deployment (job, number, id DESC);
CREATE UNIQUE INDEX deployment_one_rolling_out ON kappactl.deployment (job) WHERE state = 'rolling_out';

-- A request may come before its job (adopt) and stays after it (drop).
CREATE TABLE kappactl.request (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text NOT NULL,
    number       integer NOT NULL,
    verb         text NOT NULL,
    args         jsonb NOT NULL DEFAULT '{}',
    by           text NOT NULL DEFAULT '',
    session_role text NOT NULL DEFAULT session_user,  -- PostgreSQL's role of who asked; the commands' role cannot write it
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    answered_at  timestamptz,
    answer       jsonb NOT NULL DEFAULT '{}',      -- reason
    next_command text NOT NULL DEFAULT '',
    exit_code    smallint,
    trouble      jsonb NOT NULL DEFAULT '{}'       -- reason: why it is tried again, or what it waits for
);
CREATE INDEX request_open ON kappactl.request (id) WHERE answered_at IS NULL;

CREATE TABLE kappactl.event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    job        text NOT NULL,
    number     integer,
    deployment bigint,
    kind       text NOT NULL,
    message    jsonb NOT NULL DEFAULT '{}',        -- reason
    detail     jsonb NOT NULL DEFAULT '{}',
    by         text NOT NULL DEFAULT '',
    session_role text NOT NULL DEFAULT session_user  -- PostgreSQL's role of who asked; the commands' role cannot write it
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
    reason           jsonb NOT NULL DEFAULT '{}',
    since            timestamptz NOT NULL,
    deadline         timestamptz,                 -- when retention may begin to delete what is unread
    PRIMARY KEY (job, number, topic_id, partition)
) WITH (fillfactor = 50);

-- The last answer of each check of a deployment.
CREATE TABLE kappactl.check_result (
    deployment bigint NOT NULL REFERENCES kappactl.deployment (id) ON DELETE CASCADE,
    job        text NOT NULL,
    number     integer NOT NULL,
    name       text NOT NULL,
    stage      text NOT NULL CHECK (stage IN ('before', 'after')),
    definition jsonb NOT NULL,                     -- the check as the job file had it
    outcome    text NOT NULL,                      -- pass | fail | no answer
    detail     jsonb NOT NULL DEFAULT '{}',        -- a reason
    seconds    double precision NOT NULL DEFAULT 0,
    positions  jsonb NOT NULL DEFAULT '{}',        -- topic/partition: the offset up to which it saw results
    diff       jsonb,                              -- of a diff check: counts and examples
    failures   integer NOT NULL DEFAULT 0,         -- in a row; two after the flip roll back
    runs       bigint NOT NULL DEFAULT 1,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (deployment, name, stage)
) WITH (fillfactor = 50);
CREATE INDEX check_result_version ON kappactl.check_result (job, number);

-- How far behind a deployment's version was, the older the further apart; at most about 500 points each
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

-- Jobs that were dropped: the numbers of a later job of that name go on, because history names versions by number.
CREATE TABLE kappactl.dropped_job (
    name        text PRIMARY KEY,
    next_number integer NOT NULL,
    view        text NOT NULL,
    kept_view   boolean NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    by          text NOT NULL DEFAULT ''
);

-- written by speedlayer, as are the tables down to pace
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
    epoch        integer NOT NULL DEFAULT 0,       -- mode lambda: the newest generation, into whose rows commits write
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    hold         bigint,                           -- the commit may not pass it before hold_until
    hold_until   timestamptz,
    hold_by      text,
    fault        text NOT NULL DEFAULT '',         -- gap | recreated | missing | query | too_large | archive, …
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
    reached      bigint,                           -- about how far it is read while a worker has it
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
    counted     boolean NOT NULL DEFAULT false,   -- results hold records that the log no longer has
    unprocessable boolean NOT NULL DEFAULT false, -- the records are there, and cannot be processed
    PRIMARY KEY (job, number, topic_id, partition, from_offset)
);

-- What slows the work on a version down or keeps it from going on, a row for each agent.
CREATE TABLE kappactl.pace (
    job               text NOT NULL,
    number            integer NOT NULL,
    agent             text NOT NULL,
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    brake             text NOT NULL DEFAULT '',     -- why the replay waits for PostgreSQL; empty: it does not
    broker_throttle   double precision NOT NULL DEFAULT 0, -- share of the last seconds that brokers made it wait
    bytes_per_second  double precision NOT NULL DEFAULT 0, -- of keys and values
    trouble           jsonb NOT NULL DEFAULT '{}',  -- a reason: work that fails and is tried again
    PRIMARY KEY (job, number, agent),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);

-- written by internal/programs: the processes of versions of engine: program. The positions of a process are in position, under a claim
-- that each start gives anew; owner, lease and claim here say which agent starts it.
CREATE TABLE kappactl.program (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job        text NOT NULL,
    number     integer NOT NULL,
    instance   integer NOT NULL,                   -- 0, 1, … below program.instances
    claim      bigint NOT NULL DEFAULT 0,
    owner      text,
    lease      timestamptz,
    started_at timestamptz,                        -- of the process that runs; NULL: none does
    ends       timestamptz[] NOT NULL DEFAULT '{}', -- when it ended without being asked to, in the last ten minutes
    last_end   text NOT NULL DEFAULT '',           -- how it ended last: exit code or signal
    last_words text NOT NULL DEFAULT '',           -- the last lines of its standard error then
    UNIQUE (job, number, instance),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);

-- Moves positions of a version forward, in the transaction that writes the results of the records before them: both are committed, or
-- neither. positions is {"TOPIC/PARTITION": NEXT OFFSET, …}. The caller may be any role that may execute it; the claim, which only the
-- process knows that an agent started, is what it acts by. It raises
--   KC001  fenced: another process has taken over, or the version has ended: stop
--   KC002  held: a position is beyond a hold. DETAIL is {"TOPIC/PARTITION": OFFSET, …}: commit up to it, then try again
--   KC003  a position would move back
-- +goose StatementBegin
CREATE FUNCTION kappactl.advance(job text, version integer, claim bigint, positions jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    p     record;
    found integer := 0;
    holds jsonb := '{}';
BEGIN
    IF jsonb_typeof(positions) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'positions is not an object of offsets by TOPIC/PARTITION' USING ERRCODE = '22023';
    END IF;
    FOR p IN
        SELECT r.topic || '/' || r.partition AS place, r.next, r.fault,
               CASE WHEN r.hold_until > clock_timestamp() THEN r.hold END AS hold,
               (positions ->> (r.topic || '/' || r.partition))::bigint AS upto
          FROM kappactl.position r
         WHERE r.job = advance.job AND r.number = advance.version AND r.claim = advance.claim
           AND positions ? (r.topic || '/' || r.partition)
         ORDER BY r.topic_id, r.partition FOR UPDATE
    LOOP
        found := found + 1;
        IF p.upto IS NULL OR p.upto < p.next THEN
            RAISE EXCEPTION '%', format('%s is at %s and cannot move back to %s', p.place, p.next, p.upto) USING ERRCODE = 'KC003';
        ELSIF p.fault NOT IN ('', 'program') THEN
            RAISE EXCEPTION '%', format('%s is stopped by a fault: %s', p.place, p.fault) USING ERRCODE = 'KC001';
        ELSIF p.upto > p.hold THEN
            holds := holds || jsonb_build_object(p.place, p.hold);
        END IF;
    END LOOP;
    IF found < (SELECT count(*) FROM jsonb_object_keys(positions)) THEN
        RAISE EXCEPTION '%', format('fenced: claim %s of version v%s of job %s no longer holds these positions', claim, version, job)
            USING ERRCODE = 'KC001', HINT = 'End the process: another one has taken over, or the version has ended.';
    ELSIF holds <> '{}' THEN
        RAISE EXCEPTION 'held: the positions may not pass the offsets in DETAIL for a moment'
            USING ERRCODE = 'KC002', DETAIL = holds::text, HINT = 'Commit up to those offsets, then try again.';
    END IF;
    UPDATE kappactl.position r
       SET next = (positions ->> (r.topic || '/' || r.partition))::bigint,
           records = r.records + (positions ->> (r.topic || '/' || r.partition))::bigint - r.next
     WHERE r.job = advance.job AND r.number = advance.version AND r.claim = advance.claim
       AND positions ? (r.topic || '/' || r.partition);
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION kappactl.advance(text, integer, bigint, jsonb) FROM PUBLIC;

-- The segments of generations that are built, as those of replays in segment.
CREATE TABLE kappactl.batch_segment (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text NOT NULL,
    number       integer NOT NULL,
    generation   integer NOT NULL,
    topic_id     uuid NOT NULL,
    topic        text NOT NULL,
    partition    integer NOT NULL,
    from_offset  bigint NOT NULL,
    to_offset    bigint NOT NULL,
    state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'claimed', 'done', 'failed')),
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    deadline     timestamptz,
    rows         bigint,
    records      bigint NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0,
    dead_letters bigint NOT NULL DEFAULT 0,
    record_time  timestamptz,
    leader_epoch integer NOT NULL DEFAULT -1,
    timings      jsonb NOT NULL DEFAULT '{}',
    attempts     integer NOT NULL DEFAULT 0,
    error        text NOT NULL DEFAULT '',
    fault        text NOT NULL DEFAULT '',
    fault_from   bigint,
    fault_to     bigint,
    done_at      timestamptz,
    reached      bigint,
    CHECK (from_offset < to_offset),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);
CREATE INDEX batch_segment_generation ON kappactl.batch_segment (job, number, generation, topic_id, partition, from_offset);

-- written by batchlayer, as is generation_range: the batch generations of versions of mode lambda. Generation 0 is the replay.
CREATE TABLE kappactl.generation (
    id         bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    job        text NOT NULL,
    number     integer NOT NULL,
    generation integer NOT NULL,
    state      text NOT NULL CHECK (state IN ('building', 'live', 'kept', 'retired', 'failed')),
    base       integer,                            -- the generation that an incremental one builds on
    request    bigint,                             -- the request that asked for it
    accepted   boolean NOT NULL DEFAULT false,     -- shown although it differed (--accept-changes)
    compared   bigint,                             -- keys that were compared with what readers saw; NULL: it was not compared
    changed    bigint,                             -- those that differ
    rows       bigint,
    bytes      bigint,
    timings    jsonb NOT NULL DEFAULT '{}',        -- seconds by step; a step that is in it is done
    keep       jsonb,                              -- serve.keep when it was computed; NULL: all rows were kept
    cut_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    live_at    timestamptz,                        -- when readers were last shown it
    left_at    timestamptz,                        -- when they were last shown another one instead
    left_xid   xid8,                               -- by this transaction
    ended_at   timestamptz,                        -- of a failed or retired one
    dropped_at timestamptz,                        -- nothing of it is left
    error      jsonb NOT NULL DEFAULT '{}',        -- reason of a failed one
    exit_code  smallint,
    trouble    jsonb NOT NULL DEFAULT '{}',        -- reason: why its removal is tried again, or what it waits for
    claim      bigint NOT NULL DEFAULT 0,          -- of who removes it
    owner      text,
    lease      timestamptz,
    PRIMARY KEY (job, number, generation),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);
CREATE UNIQUE INDEX generation_one_live ON kappactl.generation (job, number) WHERE state = 'live';
CREATE UNIQUE INDEX generation_one_building ON kappactl.generation (job, number) WHERE state = 'building';

-- The offsets that a generation holds of each partition.
CREATE TABLE kappactl.generation_range (
    job         text NOT NULL,
    number      integer NOT NULL,
    generation  integer NOT NULL,
    topic_id    uuid NOT NULL,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset   bigint NOT NULL,                   -- the cut: rows of later offsets have its epoch or a later one
    leader_epoch integer NOT NULL DEFAULT -1,
    unread      int8multirange NOT NULL DEFAULT '{}', -- offsets between them that could not be read
    PRIMARY KEY (job, number, generation, topic_id, partition),
    FOREIGN KEY (job, number, generation) REFERENCES kappactl.generation (job, number, generation) ON DELETE CASCADE
);

-- written by batchlayer/schedule, as is tick: when batch runs of a job begin. It follows the job file of the live version.
CREATE TABLE kappactl.schedule (
    job          text PRIMARY KEY REFERENCES kappactl.job (name) ON DELETE CASCADE,
    expression   text NOT NULL,
    zone         text NOT NULL,
    missed       text NOT NULL,
    overlap      text NOT NULL,
    missed_after interval NOT NULL,
    since        timestamptz NOT NULL,             -- when it was set, changed or resumed: ticks count from there
    next_at      timestamptz NOT NULL,             -- the next tick
    paused_at    timestamptz,
    paused_by    text NOT NULL DEFAULT '',
    late_since   timestamptz                       -- the live generation is older than two ticks, or there is none
);

-- A moment at which a run was due. It is the key: nothing repeats a tick.
CREATE TABLE kappactl.tick (
    job           text NOT NULL REFERENCES kappactl.job (name) ON DELETE CASCADE,
    scheduled_for timestamptz NOT NULL,            -- the oldest, of ticks that were missed together
    state         text NOT NULL CHECK (state IN ('waiting', 'started', 'skipped', 'missed')),
    together      integer NOT NULL DEFAULT 1,
    request       bigint,                          -- its run; of a skipped one: the run that was under way
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    noted_at      timestamptz,                     -- when the end of its run was seen
    PRIMARY KEY (job, scheduled_for)
);
CREATE INDEX tick_open ON kappactl.tick (job) WHERE state = 'waiting' OR state = 'started' AND noted_at IS NULL;

-- written by internal/archive, as are the tables down to archive_replaced: the archive of a topic
CREATE TABLE kappactl.archive (
    topic_id   uuid PRIMARY KEY,
    topic      text NOT NULL,
    id         uuid NOT NULL DEFAULT gen_random_uuid(), -- in the marker file beside its files
    cluster_id text NOT NULL,
    location   text NOT NULL,                     -- of new files
    marked_at  timestamptz,                       -- when the marker was written there
    roll_every interval NOT NULL,
    roll_size  bigint NOT NULL,
    delete_retention interval,                    -- how long a compacted topic keeps tombstones; null: it is not compacted
    wanted_by  text[] NOT NULL DEFAULT '{}',      -- jobs; none: it stops, its files stay
    typed      text[] NOT NULL DEFAULT '{}',      -- fingerprints whose typed columns agents store for new files
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE kappactl.archive_position (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id     uuid NOT NULL REFERENCES kappactl.archive (topic_id) ON DELETE CASCADE,
    partition    integer NOT NULL,
    start_offset bigint NOT NULL,                 -- the first offset that the archive holds or will hold
    next         bigint NOT NULL,                 -- the first that is not in archive_file
    leader_epoch integer NOT NULL DEFAULT -1,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caught_up_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- what the log held then is archived
    deletes_lost_to bigint,                       -- deletes of values below it may be missing; null: none is
    told         text NOT NULL DEFAULT '',        -- what the histories of the jobs that want it say: late, fault
    files        bigint NOT NULL DEFAULT 0,       -- of archive_file, as are the two below: the manifest may have a million rows
    records      bigint NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0,
    claim        bigint NOT NULL DEFAULT 0,
    owner        text,
    lease        timestamptz,
    error        text NOT NULL DEFAULT '',        -- of the last attempt; it is tried again
    sampled_at   timestamptz,                     -- when the log was last looked at, as are the three below
    log_start    bigint,
    last_stable  bigint,
    deadline     timestamptz,                     -- when retention may begin to delete what is not archived
    fault        text NOT NULL DEFAULT '',        -- as of position; not tried again
    fault_detail text NOT NULL DEFAULT '',
    fault_from   bigint,
    fault_to     bigint,
    UNIQUE (topic_id, partition)
) WITH (fillfactor = 50);

-- The manifest: the ranges of a partition are contiguous from start_offset to next.
CREATE TABLE kappactl.archive_file (
    topic_id      uuid NOT NULL,
    partition     integer NOT NULL,
    from_offset   bigint NOT NULL,
    to_offset     bigint NOT NULL,
    location      text NOT NULL,
    name          text NOT NULL,                  -- below location; empty: an accepted gap
    records       bigint NOT NULL,
    bytes         bigint NOT NULL,
    sha256        bytea NOT NULL,
    leader_epoch  integer NOT NULL,
    min_timestamp bigint,                         -- of its records, in milliseconds
    max_timestamp bigint,
    published_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (topic_id, partition, from_offset) INCLUDE (max_timestamp, bytes), -- a search by time reads the index alone
    CHECK (from_offset < to_offset),
    FOREIGN KEY (topic_id, partition) REFERENCES kappactl.archive_position (topic_id, partition) ON DELETE CASCADE
);
-- The totals of a position are those of its rows, whoever writes them.
-- +goose StatementBegin
CREATE FUNCTION kappactl.archive_total() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kappactl.archive_position p
    SET files = p.files + t.sign * t.files, records = p.records + t.sign * t.records, bytes = p.bytes + t.sign * t.bytes
    FROM (SELECT topic_id, partition, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END AS sign,
            count(*) FILTER (WHERE name <> '') AS files, sum(f.records)::bigint AS records, sum(f.bytes)::bigint AS bytes
        FROM changed f GROUP BY topic_id, partition) t
    WHERE p.topic_id = t.topic_id AND p.partition = t.partition;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER added AFTER INSERT ON kappactl.archive_file
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION kappactl.archive_total();
CREATE TRIGGER removed AFTER DELETE ON kappactl.archive_file
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION kappactl.archive_total();
CREATE INDEX archive_gap ON kappactl.archive_file (topic_id, partition, from_offset) INCLUDE (to_offset) WHERE name = '';

-- written by internal/typed: the declared columns of archived files as they are decoded, at the location of the file. A row may be
-- deleted at any time.
CREATE TABLE kappactl.archive_typed (
    topic_id     uuid NOT NULL,
    partition    integer NOT NULL,
    from_offset  bigint NOT NULL,
    fingerprint  text NOT NULL,                   -- of the decoder and the columns
    name         text NOT NULL,
    bytes        bigint NOT NULL,
    sha256       bytea NOT NULL,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (topic_id, partition, from_offset, fingerprint),
    FOREIGN KEY (topic_id, partition, from_offset) REFERENCES kappactl.archive_file (topic_id, partition, from_offset) ON DELETE CASCADE
);

-- Files whose records are in a larger one. They are deleted later: a restored database may still name them.
CREATE TABLE kappactl.archive_replaced (
    topic_id    uuid NOT NULL,
    partition   integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset   bigint NOT NULL,
    location    text NOT NULL,
    name        text NOT NULL,
    delete_at   timestamptz NOT NULL,
    PRIMARY KEY (topic_id, partition, location, name),
    FOREIGN KEY (topic_id, partition) REFERENCES kappactl.archive_position (topic_id, partition) ON DELETE CASCADE
);
CREATE INDEX archive_replaced_due ON kappactl.archive_replaced (delete_at);

-- written by abtest, as are the tables down to guardrail: experiments, which split the readers of a job between versions. Versions
-- are written as readers know them: v1.
CREATE TABLE kappactl.experiment (
    job        text NOT NULL REFERENCES kappactl.job (name) ON DELETE CASCADE,
    run        integer NOT NULL,
    id         bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    arms       text[] NOT NULL,                  -- the control first
    assign     text NOT NULL,                    -- hash: the weights stay for the run; sticky: a subject keeps its first arm
    coverage   integer NOT NULL,                 -- subjects in the experiment, in parts per million; others read the control
    state      text NOT NULL,                    -- running, paused or ended
    reason     jsonb NOT NULL DEFAULT '{}',      -- of the state
    settings   jsonb NOT NULL DEFAULT '{}',      -- experiment of the newest arm's job file; it holds for the whole run
    progress   jsonb NOT NULL DEFAULT '{}',      -- what the next look needs to know of those before
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_by text NOT NULL DEFAULT '',
    ended_at   timestamptz,
    claim      bigint NOT NULL DEFAULT 0,
    owner      text,
    lease      timestamptz,
    PRIMARY KEY (job, run)
);
CREATE UNIQUE INDEX experiment_one_open ON kappactl.experiment (job) WHERE ended_at IS NULL;

-- What was decided in a run, append-only. The weights of a decision are those from then on; an epoch is a stretch of constant weights.
CREATE TABLE kappactl.decision (
    job     text NOT NULL,
    run     integer NOT NULL,
    number  integer NOT NULL,
    epoch   integer NOT NULL,
    verdict text NOT NULL,                       -- start, weights, pause, resume or end; of a look that changes nothing, wait or freeze
    weights integer[] NOT NULL,                  -- parts per million, in the order of the arms
    reason  jsonb NOT NULL,
    inputs  jsonb NOT NULL DEFAULT '{}',         -- of a look: with the run's settings, all that the verdict follows from
    by      text NOT NULL DEFAULT '',
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, run, number),
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);

-- What readers are routed by: one row for each running experiment, read in their own statements. A change of weights is an update of it.
CREATE TABLE kappactl.route (
    job      text PRIMARY KEY,
    run      integer NOT NULL,
    arms     text[] NOT NULL,
    weights  integer[] NOT NULL,                 -- parts per million
    coverage integer NOT NULL,
    sticky   boolean NOT NULL,
    paused   boolean NOT NULL DEFAULT false,     -- every reader reads the control
    epoch    integer NOT NULL,
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);

-- The arm of each subject that was exposed to one. It is personal data where subjects are: ab forget removes it.
CREATE TABLE kappactl.assignment (
    job         text NOT NULL,
    run         integer NOT NULL,
    subject     text NOT NULL,
    arm         text NOT NULL,
    epoch       integer NOT NULL,
    probability integer NOT NULL,                -- of that arm then, in parts per million
    exposed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    reward      double precision NOT NULL DEFAULT 0, -- of the accepted rewards: the highest (bernoulli) or their sum
    crossed     boolean NOT NULL DEFAULT false,  -- it has read another arm, too
    PRIMARY KEY (job, run, subject),
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);
CREATE INDEX assignment_subject ON kappactl.assignment (job, subject);

-- The rewards that were reported, each event once. status is accepted, orphan (its subject is not recorded yet), before_exposure,
-- outside_window or late.
CREATE TABLE kappactl.reward (
    job      text NOT NULL,
    run      integer NOT NULL,
    source   text NOT NULL,                      -- http, sql or kafka
    event_id text NOT NULL,
    subject  text NOT NULL,
    value    double precision NOT NULL,
    at       timestamptz NOT NULL,
    status   text NOT NULL,
    PRIMARY KEY (job, run, source, event_id),
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);
CREATE INDEX reward_subject ON kappactl.reward (job, subject);
CREATE INDEX reward_orphan ON kappactl.reward (job, run) WHERE status = 'orphan';

-- How far the rewards of a run have been read. Whoever stores rewards holds its row.
CREATE TABLE kappactl.reward_source (
    job       text NOT NULL,
    run       integer NOT NULL,
    offsets   jsonb NOT NULL DEFAULT '{}',       -- of a topic: the next offset by partition
    times     jsonb NOT NULL DEFAULT '{}',       -- of a topic: how far each partition has been read in time
    watermark timestamptz,                       -- all rewards up to then have been read; null: they are reported as they happen
    read_at   timestamptz,                       -- of the last read that succeeded
    counts    jsonb NOT NULL DEFAULT '{}',       -- reported rewards by what became of them
    trouble   jsonb NOT NULL DEFAULT '{}',       -- why the last read failed
    PRIMARY KEY (job, run),
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);

-- What the looks at a guardrail have come to.
CREATE TABLE kappactl.guardrail (
    job      text NOT NULL,
    run      integer NOT NULL,
    name     text NOT NULL,
    state    text NOT NULL DEFAULT 'no_data',    -- pass, fail, no_data or error, at the last look
    breached boolean NOT NULL DEFAULT false,     -- it stays so for the run
    failures integer NOT NULL DEFAULT 0,
    errors   integer NOT NULL DEFAULT 0,         -- in a row
    no_data  integer NOT NULL DEFAULT 0,         -- in a row
    reason   jsonb NOT NULL DEFAULT '{}',
    seen_at  timestamptz,
    PRIMARY KEY (job, run, name),
    FOREIGN KEY (job, run) REFERENCES kappactl.experiment (job, run) ON DELETE CASCADE
);

-- The place of a subject in [0, 1000000); abtest/policy computes the same.
CREATE FUNCTION kappactl.bucket(salt text, subject text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ((('x' || encode(substr(sha256(convert_to(salt || ':' || subject, 'UTF8')), 1, 4), 'hex'))::bit(32)::bigint * 1000000) >> 32)::integer
$$;

-- The arm whose interval holds a subject; null: it is not in the experiment. "kappactl" and ".subject" are apart in what follows, so that a
-- control schema of another name leaves the names of settings alone.
-- +goose StatementBegin
CREATE FUNCTION kappactl.arm_of(r kappactl.route, subject text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    place integer;
    cut   integer := 0;
BEGIN
    IF r.coverage < 1000000 AND kappactl.bucket(r.job || ':' || r.run || ':gate', subject) >= r.coverage THEN
        RETURN NULL;
    END IF;
    place := kappactl.bucket(r.job || ':' || r.run, subject);
    FOR i IN 1 .. cardinality(r.arms) LOOP
        cut := cut + r.weights[i];
        IF cut > place THEN
            RETURN r.arms[i];
        END IF;
    END LOOP;
    RETURN r.arms[cardinality(r.arms)];
END $$;
-- +goose StatementEnd

-- The version that a statement on the view of a job reads: the pinned one, the stored one of a sticky subject, else by hash. It is STABLE: a
-- statement sees one version. Run, default and arms are those in the view's text; a reader whose snapshot has no route of that run, or
-- one that names other arms, gets the default.
-- +goose StatementBegin
CREATE FUNCTION kappactl.pick(job text, run integer, subject text, def text, arms text[]) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pin text := nullif(current_setting('kappactl' || '.pin_' || pick.job, true), '');
    r   kappactl.route;
    arm text;
BEGIN
    IF pin = ANY (pick.arms) THEN
        RETURN pin;
    ELSIF pin IS NOT NULL THEN
        RAISE EXCEPTION '%', format('%s is not an arm of the experiment of %s', pin, pick.job) USING ERRCODE = '22023',
            HINT = format('Set kappactl%spin_%s to one of: %s', '.', pick.job, array_to_string(pick.arms, ', '));
    END IF;
    IF pick.subject IS NULL THEN
        RETURN def;
    END IF;
    SELECT * INTO r FROM kappactl.route t WHERE t.job = pick.job AND t.run = pick.run AND NOT t.paused;
    IF NOT FOUND THEN
        RETURN def;
    END IF;
    IF r.sticky THEN
        SELECT a.arm INTO arm FROM kappactl.assignment a WHERE a.job = pick.job AND a.run = pick.run AND a.subject = pick.subject;
    END IF;
    arm := coalesce(arm, kappactl.arm_of(r, pick.subject));
    IF arm = ANY (pick.arms) THEN
        RETURN arm;
    END IF;
    RETURN def;
END $$;
-- +goose StatementEnd

-- Records that a subject is about to read its arm and returns the arm; null without an experiment. Who is pinned, or not in the experiment,
-- is not recorded.
-- +goose StatementBegin
CREATE FUNCTION kappactl.expose(job text, subject text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pin text := nullif(current_setting('kappactl' || '.pin_' || expose.job, true), '');
    r   kappactl.route;
    arm text;
BEGIN
    IF expose.subject IS NULL OR octet_length(convert_to(expose.subject, 'UTF8')) NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION 'a subject has 1 to 256 bytes' USING ERRCODE = '22023';
    END IF;
    SELECT * INTO r FROM kappactl.route t WHERE t.job = expose.job;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF pin IS NOT NULL OR r.paused THEN -- not recorded; who is, and reads another arm now, is compared no more
        arm := CASE WHEN pin IS NULL THEN r.arms[1] ELSE kappactl.pick(r.job, r.run, expose.subject, r.arms[1], r.arms) END;
        UPDATE kappactl.assignment a SET crossed = true WHERE a.job = r.job AND a.run = r.run AND a.subject = expose.subject
            AND a.arm <> coalesce(pin, r.arms[1]) AND NOT a.crossed;
        RETURN arm;
    END IF;
    arm := kappactl.arm_of(r, expose.subject);
    IF arm IS NULL THEN
        RETURN r.arms[1];
    END IF;
    INSERT INTO kappactl.assignment (job, run, subject, arm, epoch, probability)
        VALUES (r.job, r.run, expose.subject, arm, r.epoch, r.weights[array_position(r.arms, arm)])
        ON CONFLICT ON CONSTRAINT assignment_pkey DO NOTHING;
    IF NOT FOUND AND r.sticky THEN -- whoever came first decided
        SELECT a.arm INTO arm FROM kappactl.assignment a WHERE a.job = r.job AND a.run = r.run AND a.subject = expose.subject;
    END IF;
    RETURN arm;
END $$;
-- +goose StatementEnd

-- Sets the subject of the statements that follow in this transaction.
CREATE FUNCTION kappactl.set_subject(subject text) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT set_config('kappactl' || '.subject', subject, true)
$$;
REVOKE EXECUTE ON FUNCTION kappactl.expose(text, text), kappactl.set_subject(text) FROM PUBLIC;

-- written by internal/hooks: the hooks of the agents' settings, and the first event that each is told of
CREATE TABLE kappactl.hook (
    name    text PRIMARY KEY,
    since   bigint NOT NULL,                  -- id of an event: those above it are looked at
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp() -- when it was last in an agent's settings
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

-- +goose Down
SELECT 1;
