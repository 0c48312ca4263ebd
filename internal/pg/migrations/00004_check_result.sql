-- +goose Up

-- written by reprocess: what each check of a deployment said last
CREATE TABLE kappactl.check_result (
    deployment bigint NOT NULL REFERENCES kappactl.deployment (id) ON DELETE CASCADE,
    job        text NOT NULL,
    number     integer NOT NULL,
    name       text NOT NULL,
    stage      text NOT NULL CHECK (stage IN ('before', 'after')),
    definition jsonb NOT NULL,                     -- the check as the job file had it
    outcome    text NOT NULL,                      -- pass | fail | no answer
    detail     text NOT NULL DEFAULT '',
    seconds    double precision NOT NULL DEFAULT 0,
    positions  jsonb NOT NULL DEFAULT '{}',        -- topic/partition: the offset up to which it saw results
    diff       jsonb,                              -- of a diff check: counts and examples
    failures   integer NOT NULL DEFAULT 0,         -- in a row; two after the flip roll back
    runs       bigint NOT NULL DEFAULT 1,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (deployment, name, stage)
) WITH (fillfactor = 50);
CREATE INDEX check_result_version ON kappactl.check_result (job, number);

UPDATE kappactl.schema_info SET version = greatest(version, 4);

-- +goose Down
SELECT 1;
