package reprocess

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// DeploymentEvents are the events of a deployment with an id above after, oldest first, at most 1,000. Ids are given out before
// transactions commit, so an event with a lower id than one that was seen may still appear: who follows asks again from a little
// below the newest.
func (s *Store) DeploymentEvents(ctx context.Context, deployment, after int64) ([]PastEvent, error) {
	rows, err := collect[eventRow](ctx, s.pool, `SELECT id, at, job, number, deployment, kind, message, detail::text AS detail, by
		FROM kappactl.event WHERE deployment = @deployment AND id > @after
			AND job = (SELECT job FROM kappactl.deployment WHERE id = @deployment) ORDER BY id LIMIT 1000`,
		pgx.NamedArgs{"deployment": deployment, "after": after})
	if err != nil {
		return nil, fmt.Errorf("read the events of deployment %d: %w", deployment, err)
	}
	return pastEvents(rows), nil
}

func pastEvents(rows []eventRow) []PastEvent {
	out := make([]PastEvent, len(rows))
	for i, r := range rows {
		out[i] = PastEvent{
			ID: r.ID, At: r.At.UTC(), Job: job.Name(r.Job), Deployment: r.Deployment, Kind: r.Kind, Message: r.Message,
			Detail: json.RawMessage(r.Detail), By: r.By,
		}
		if r.Number != nil {
			v := job.Number(*r.Number).String()
			out[i].Version = &v
		}
	}
	return out
}
