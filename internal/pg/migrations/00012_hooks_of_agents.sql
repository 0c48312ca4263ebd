-- +goose Up

-- written by internal/hooks: when a hook was last in the settings of an agent; one that is in none any more is forgotten
ALTER TABLE kappactl.hook ADD COLUMN seen_at timestamptz NOT NULL DEFAULT clock_timestamp();

-- written by internal/agent: digests of the hooks in the agent's settings, by name; null: of a release that does not say
ALTER TABLE kappactl.agent ADD COLUMN hooks jsonb;

UPDATE kappactl.schema_info SET version = greatest(version, 12);

-- +goose Down
SELECT 1;
