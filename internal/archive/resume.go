package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Resumed are the partitions of an archive that try again after a fault.
type Resumed struct {
	Topic      string   `json:"topic"`
	TopicID    string   `json:"topic_id"`
	Partitions []int32  `json:"partitions"`
	Jobs       []string `json:"-"` // that want the archive
}

// Resume lets the partitions of a topic that a fault has stopped try again, those of all topics when it is empty, and
// returns them by archive.
func (Store) Resume(ctx context.Context, db pg.DB, topic string) ([]Resumed, error) {
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[Resumed], `
		WITH resumed AS (
			UPDATE kappactl.archive_position p SET fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, told = '',
				caught_up_at = CASE WHEN p.fault = '`+string(FaultDeletes)+`' THEN clock_timestamp() ELSE p.caught_up_at END
			FROM kappactl.archive a WHERE a.topic_id = p.topic_id AND p.fault <> '' AND @topic IN ('', a.topic)
			RETURNING p.topic_id, p.partition)
		SELECT a.topic, a.topic_id::text, array_agg(r.partition ORDER BY r.partition), a.wanted_by
		FROM resumed r JOIN kappactl.archive a USING (topic_id) GROUP BY a.topic_id ORDER BY a.topic, a.created_at`,
		pgx.NamedArgs{"topic": topic})
	if err != nil {
		return nil, fmt.Errorf("resume the archive: %w", err)
	}
	return out, nil
}

// AcceptGap lets a partition go on behind the offsets of its fault. What retention took becomes a range without a file.
// A log that was cut off below the archive's end is archived again from that end on. It returns the jobs that want the
// archive. False: no partition has a fault of that range.
func (s Store) AcceptGap(ctx context.Context, tx *pg.Tx, topic string, partition int32, gap job.Range) (jobs []string,
	ok bool, err error,
) {
	jobs, err = s.acceptGap(ctx, tx, topic, partition, gap)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("accept the gap %s/%d %s of the archive: %w", topic, partition, gap, err)
	}
	return jobs, true, nil
}

// acceptGap is AcceptGap, with pgx.ErrNoRows when no partition has a fault of that range.
func (Store) acceptGap(ctx context.Context, tx *pg.Tx, topic string, partition int32, gap job.Range) (jobs []string,
	err error,
) {
	var item, next int64
	var id [16]byte
	var location string
	err = tx.QueryRow(ctx, `SELECT p.id, p.next, p.topic_id, a.location, a.wanted_by
		FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id)
		WHERE a.topic = @topic AND p.partition = @partition AND p.fault <> '' AND p.fault_from = @from AND p.fault_to = @to
		FOR UPDATE OF p`,
		pgx.NamedArgs{"topic": topic, "partition": partition, "from": gap.From, "to": gap.To}).Scan(&item, &next, &id,
		&location, &jobs)
	if err != nil {
		return nil, err
	}
	if gap.To > next {
		err = insertFile(ctx, tx, FileRow{
			Partition: job.Partition{Topic: topic, TopicID: id, ID: partition}, Range: job.Range{From: next, To: gap.To},
			Location: location, SHA256: []byte{}, LeaderEpoch: -1,
		})
		if err != nil {
			return nil, err
		}
	}
	_, err = tx.Exec(ctx, `UPDATE kappactl.archive_position SET next = greatest(next, @to),
			leader_epoch = CASE WHEN next >= @to THEN -1 ELSE leader_epoch END,
			fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL, told = '' WHERE id = @item`,
		pgx.NamedArgs{"item": item, "to": gap.To})
	return jobs, err
}
