package speedlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	sqlUnread = `
SELECT id, topic_id::text AS topic_id, topic, partition, from_offset, deadline FROM kappactl.segment
 WHERE job = @job AND number = @number AND state IN ('open', 'claimed') ORDER BY id`
	sqlDeadlines = `
UPDATE kappactl.segment AS g SET deadline = d.deadline
  FROM unnest(@ids::bigint[], @deadlines::timestamptz[]) AS d (id, deadline)
  JOIN (SELECT id FROM kappactl.segment WHERE id = ANY (@ids::bigint[]) AND state IN ('open', 'claimed')
         ORDER BY id FOR UPDATE SKIP LOCKED) AS free ON free.id = d.id
 WHERE g.id = d.id`
)

type unreadSegment struct {
	ID         int64
	TopicID    string
	Topic      string
	Partition  int32
	FromOffset int64
	Deadline   *time.Time
}

// Deadlines writes beside each segment that is not read yet when retention may begin to delete it; at says so for an
// offset, nil is never or unknown. Those that are deleted first are claimed first.
func (Store) Deadlines(ctx context.Context, db pg.DB, ref job.Ref, at func(job.Partition, int64) *time.Time) error {
	found, err := pg.Structs[unreadSegment](ctx, db, sqlUnread, refArgs(ref))
	if err != nil {
		return fmt.Errorf("read the open segments of %s: %w", ref, err)
	}
	var ids []int64
	var deadlines []*time.Time
	for _, g := range found {
		id, err := job.ParseTopicID(g.TopicID)
		if err != nil {
			return fmt.Errorf("read the open segments of %s: %w", ref, err)
		}
		if d := at(job.Partition{Topic: g.Topic, TopicID: id, ID: g.Partition}, g.FromOffset); !sameTime(d, g.Deadline) {
			ids, deadlines = append(ids, g.ID), append(deadlines, d)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	args := refArgs(ref)
	args["ids"], args["deadlines"] = ids, deadlines
	if _, err := db.Exec(ctx, sqlDeadlines, args); err != nil {
		return fmt.Errorf("write the deadlines of %s: %w", ref, err)
	}
	return nil
}

// sameTime compares to the second: estimates differ by less at every look.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Sub(*b).Abs() < time.Second
}
