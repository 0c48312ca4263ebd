package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// OneArchive refuses a job file whose archive is at another location than that of another job which reads one of its
// topics: a topic has one archive.
func OneArchive(ctx context.Context, db pg.DB, spec *job.Spec) error {
	if spec.Archive == nil {
		return nil
	}
	var other, topic, location string
	err := db.QueryRow(ctx, `SELECT v.job, t.topic, v.spec -> 'archive' ->> 'location'
		FROM kappactl.version v CROSS JOIN LATERAL jsonb_array_elements_text(v.spec -> 'source' -> 'topics') t (topic)
		WHERE v.ended_at IS NULL AND v.number > 0 AND v.job <> @job AND t.topic = ANY(@topics)
		  AND v.spec -> 'archive' ->> 'location' <> @location
		ORDER BY v.job, v.number DESC LIMIT 1`,
		pgx.NamedArgs{"job": string(spec.Job), "topics": spec.Source.Topics, "location": spec.Archive.Location}).Scan(&other,
		&topic, &location)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for other archives of the topics of %s: %w", spec.Job, err)
	}
	return Refuse(job.ExitConflict, "write archive.location: "+location+", or change it in both jobs",
		"job %q archives topic %s at %s: a topic has one archive", other, topic, location)
}
