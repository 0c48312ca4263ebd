package status

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// Gap is a range of offsets that a person let a version skip. Its JSON is documented; fields are only added.
type Gap struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"` // exclusive
	// Counted reports that the results contain these offsets, which the log has lost since.
	Counted bool      `json:"counted"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// gapRow is an accepted gap of a version.
type gapRow struct {
	Job    string
	Number int
	Gap
}

// readGaps reads the accepted gaps of one job's versions, or of all versions that have not ended, in order.
func readGaps(ctx context.Context, db pg.DB, name string) ([]gapRow, error) {
	return pg.Structs[gapRow](ctx, db,
		`SELECT g.job, g.number, g.topic, g.partition, g.from_offset AS "from", g.to_offset AS "to", g.counted, g.by, g.at
		FROM kappactl.accepted_gap g JOIN kappactl.version v USING (job, number)
		WHERE v.job = @job OR (@job::text = '' AND v.ended_at IS NULL)
		ORDER BY g.job, g.number, g.topic, g.partition, g.from_offset`,
		pgx.NamedArgs{"job": name})
}

// gapsOf returns those of one version.
func gapsOf(all []gapRow, name string, number int) []Gap {
	out := []Gap{}
	for _, r := range all {
		if r.Job == name && r.Number == number {
			r.At = r.At.UTC()
			out = append(out, r.Gap)
		}
	}
	return out
}
