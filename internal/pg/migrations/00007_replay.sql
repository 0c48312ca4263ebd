-- +goose Up

-- Offsets that were counted before the log lost them: results hold what the log no longer has.
ALTER TABLE kappactl.accepted_gap ADD COLUMN counted boolean NOT NULL DEFAULT false;

-- written by reprocess: when retention may begin to delete what is unread, and what a person should know of a version
ALTER TABLE kappactl.observation ADD COLUMN deadline timestamptz;
ALTER TABLE kappactl.version ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]';

-- written by speedlayer, a row a version and agent: what slows the work down there
CREATE TABLE kappactl.pace (
    job               text NOT NULL,
    number            integer NOT NULL,
    agent             text NOT NULL,
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    brake             text NOT NULL DEFAULT '',     -- why the replay waits for PostgreSQL; empty: it does not
    broker_throttle   double precision NOT NULL DEFAULT 0, -- of the last seconds, the share that the brokers told it to wait
    bytes_per_second  double precision NOT NULL DEFAULT 0, -- of keys and values
    PRIMARY KEY (job, number, agent),
    FOREIGN KEY (job, number) REFERENCES kappactl.version (job, number) ON DELETE CASCADE
);

UPDATE kappactl.schema_info SET version = greatest(version, 7);

-- +goose Down
SELECT 1;
