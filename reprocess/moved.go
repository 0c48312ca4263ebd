package reprocess

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// movedDetail is that of the event about keys in more than one partition.
type movedDetail struct {
	Moved int64 `json:"moved_keys"`
	Exact bool  `json:"exact"`
}

// moved notes how many keys of an upsert the replay saw in more than one partition: Kafka keeps the order of a key's records within a
// partition only.
func (c *Controller) moved(ctx context.Context, st *state) error {
	keys, exact, err := c.Replays.Moved(ctx, c.Pool, st.ref(), st.schema(), st.layout)
	if err != nil || keys == 0 {
		return err
	}
	by := "time of the record"
	if st.layout.Ordered() {
		by = "serve.order_by"
	}
	e := st.entry(eventWarning, "%s; which of them is the newest is told by the %s: let producers choose the partition by the key", movedWords(keys, exact), by)
	e.Detail = movedDetail{keys, exact}
	c.log(st).Warn(e.Message)
	return addEvent(ctx, c.Pool, e)
}

func movedWords(keys int64, exact bool) string {
	about, have, s := "", "have", "s"
	if !exact {
		about = "about "
	}
	if keys == 1 {
		have, s = "has", ""
	}
	return fmt.Sprintf("%s%s key%s %s records in more than one partition", about, grouped(keys), s, have)
}

// keysMoved are the warnings of an upsert whose keys are, or may be, in more than one partition. They are read once, and again after
// what adds to them: the history grows.
func (w *watch) keysMoved(ctx context.Context, st *state) ([]string, error) {
	if st.layout.Shape != job.Latest || w.movedKnown {
		return w.moved, nil
	}
	var added int
	var seen string
	err := w.c.Pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE kind = 'partition'),
			coalesce((array_agg(message ORDER BY id DESC) FILTER (WHERE kind = 'warning' AND detail ->> 'moved_keys' IS NOT NULL))[1], '')
		FROM kappactl.event WHERE job = @job AND number = @number AND kind IN ('partition', 'warning')`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number}).Scan(&added, &seen)
	if err != nil {
		return nil, fmt.Errorf("read where keys of %s were seen: %w", st.ref(), err)
	}
	var out []string
	if seen != "" {
		out = append(out, seen)
	}
	if added > 0 {
		out = append(out, "partitions were added: keys may have moved between partitions; the newest record of a key is told by its order or time, not by its partition")
	}
	w.moved, w.movedKnown = out, true
	return out, nil
}
