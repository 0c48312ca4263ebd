package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// State is how the archive of a partition is doing.
type State string

// The states, the first that applies.
const (
	StateFault     State = "fault"     // it goes on after archive resume
	StateEnded     State = "ended"     // no job wants it
	StateError     State = "error"     // the last attempt failed; it is tried again
	StateLate      State = "late"      // retention may delete records before they are archived
	StateWaiting   State = "waiting"   // no agent has it
	StateArchiving State = "archiving" // an agent has it
)

// Status is the archive of one partition, for people.
type Status struct {
	Topic      string     `json:"topic"`
	TopicID    string     `json:"topic_id"`
	Partition  int32      `json:"partition"`
	State      State      `json:"state"`
	Detail     string     `json:"detail"` // of a fault or an error
	FaultFrom  *int64     `json:"fault_from"`
	FaultTo    *int64     `json:"fault_to"`
	Start      int64      `json:"start"`       // the first offset in the archive
	Next       int64      `json:"next"`        // the first that is not
	LogStart   *int64     `json:"log_start"`   // as last sampled
	LastStable *int64     `json:"last_stable"` // as last sampled
	Behind     *int64     `json:"behind"`      // offsets of the log that are not archived
	Deadline   *time.Time `json:"deadline"`    // when retention or compaction may begin to delete what is not archived
	Files      int64      `json:"files"`
	Records    int64      `json:"records"`
	Bytes      int64      `json:"bytes"`
	Location   string     `json:"location"` // of new files
	Jobs       []string   `json:"jobs"`
	Owner      string     `json:"owner"` // the agent that has it
	Published  time.Time  `json:"published_at"`
}

// deadlineSQL is when retention or compaction may delete what position p of archive a has not archived; null: it will
// not. Compaction deletes tombstones.
const deadlineSQL = `CASE WHEN p.next < p.last_stable THEN least(p.deadline, p.caught_up_at + a.delete_retention) END`

// lateSQL is true of a position p of archive a when less than two rolls are left before retention may delete what is
// not archived, or half the time after which compaction may delete tombstones is over.
const lateSQL = `(p.next < p.last_stable AND coalesce(p.deadline < clock_timestamp() + 2 * a.roll_every, false)
	OR p.next < p.last_stable AND coalesce(p.caught_up_at + a.delete_retention / 2 < clock_timestamp(), false))`

// Statuses lists the partitions of the archives of a topic, or of all when it is empty.
func (Store) Statuses(ctx context.Context, db pg.DB, topic string) ([]Status, error) {
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[Status], `
		SELECT a.topic, a.topic_id::text, p.partition,
			CASE WHEN p.fault <> '' THEN 'fault' WHEN a.wanted_by = '{}' THEN 'ended' WHEN p.error <> '' THEN 'error'
				WHEN `+lateSQL+` THEN 'late' WHEN p.owner IS NULL THEN 'waiting' ELSE 'archiving' END,
			CASE WHEN p.fault <> '' THEN p.fault_detail ELSE p.error END, p.fault_from, p.fault_to,
			p.start_offset, p.next, p.log_start, p.last_stable, greatest(p.last_stable - p.next, 0), `+deadlineSQL+`,
			p.files, p.records, p.bytes, a.location, a.wanted_by, coalesce(p.owner, ''), p.published_at
		FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id)
		WHERE @topic IN ('', a.topic) ORDER BY a.topic, a.created_at, p.partition`, pgx.NamedArgs{"topic": topic})
	if err != nil {
		return nil, fmt.Errorf("read the state of the archive: %w", err)
	}
	return out, nil
}

// Of is the partition that a status is of.
func (s Status) Of() job.Partition {
	id, err := job.ParseTopicID(s.TopicID)
	if err != nil {
		panic("archive: " + err.Error()) // PostgreSQL writes UUIDs
	}
	return job.Partition{Topic: s.Topic, TopicID: id, ID: s.Partition}
}
