-- +goose Up

-- A request may come before its job (adopt) and stays after it (drop).
ALTER TABLE kappactl.request DROP CONSTRAINT request_job_fkey;

ALTER TABLE kappactl.version ADD COLUMN keep_table boolean NOT NULL DEFAULT false;  -- its table stays when the version ends
ALTER TABLE kappactl.job ADD COLUMN dropping_at timestamptz;                         -- drop is under way

-- Jobs that were dropped: the numbers of a later job of that name go on, because history names versions by number.
CREATE TABLE kappactl.dropped_job (
    name        text PRIMARY KEY,
    next_number integer NOT NULL,
    view        text NOT NULL,
    kept_view   boolean NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    by          text NOT NULL DEFAULT ''
);

UPDATE kappactl.schema_info SET version = greatest(version, 2);

-- +goose Down
SELECT 1;
