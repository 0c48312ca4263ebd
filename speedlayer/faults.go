package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
)

// writeFaults writes the faults that everything in front of them is committed for.
func (l *live) writeFaults(ctx context.Context) error {
	var all error
	for _, o := range l.owned {
		if !o.faulty() {
			continue
		}
		written, err := l.writeFault(ctx, o)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		l.halt(o, o.fault.Kind)
		if written {
			l.Metrics.Faults.Add(1)
			l.log.Error("a partition cannot go on", "topic", o.partition.Topic, "partition", o.partition.ID, "fault",
				o.fault.Kind, "detail", o.fault.Detail)
		}
	}
	return all
}

// endFaults clears the faults of partitions whose offsets are there again.
func (l *live) endFaults(ctx context.Context) error {
	var all error
	for _, o := range l.owned {
		if !o.halted || !o.answers {
			continue
		}
		next, epoch, ended, err := l.endFault(ctx, o)
		switch {
		case err != nil:
			all = errors.Join(all, err)
		case ended:
			l.log.Info("a partition goes on: what it lacked is there again", "topic", o.partition.Topic, "partition",
				o.partition.ID)
			o.goOn(next, epoch)
		}
	}
	return all
}

const sqlFaultEnd = `
UPDATE kappactl.position
   SET fault = '', fault_detail = '', fault_from = NULL, fault_to = NULL
 WHERE job = @job AND number = @number AND topic_id = @topic_id::uuid AND partition = @partition
   AND claim = @claim AND (fault IN ` + passingKinds + ` OR fault = 'gap' AND fault_from = next AND @archived)
RETURNING next, leader_epoch`

// endFault clears a passing fault beside a position that is still held. Of a row that has none by now a renewal tells.
func (r *run) endFault(ctx context.Context, o *owned) (next int64, epoch int32, ended bool, err error) {
	args := refArgs(r.ref)
	args["topic_id"], args["partition"], args["claim"] = o.partition.TopicID.String(), o.partition.ID, o.claim
	args["archived"] = r.archived()
	err = r.Pool.QueryRow(ctx, sqlFaultEnd, args).Scan(&next, &epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("clear the fault of %s of %s: %w", o.partition, r.ref, err)
	}
	return next, epoch, true, nil
}

const (
	sqlAway = `
SELECT DISTINCT topic, topic_id::text AS topic_id FROM {segment}
 WHERE {of} AND state = 'failed' AND fault IN ` + passingKinds
	sqlReopen = `
UPDATE {segment}
   SET state = 'open', fault = '', error = '', fault_from = NULL, fault_to = NULL, attempts = 0
 WHERE {of} AND topic_id = @topic_id::uuid AND state = 'failed' AND fault IN ` + passingKinds
)

// reopen opens the segments whose topic was away and is there again, under the id that it had.
func (p *replay) reopen(ctx context.Context) error {
	if now := p.Now(); now.Sub(p.asked) < time.Second {
		return nil
	}
	p.asked = p.Now()
	type topic struct{ Topic, TopicID string }
	away, err := pg.Structs[topic](ctx, p.Pool, p.target.sql(sqlAway), p.target.args())
	if err != nil || len(away) == 0 {
		return err
	}
	admin, err := kafka.NewAdmin(p.Kafka)
	if err != nil {
		return err
	}
	defer admin.Close()
	names := make([]string, len(away))
	for i, t := range away {
		names[i] = t.Topic
	}
	cluster, ids, err := admin.IDs(ctx, names)
	if err != nil || p.cluster != "" && cluster != "" && cluster != p.cluster {
		return err
	}
	for _, t := range away {
		if id, there := ids[t.Topic]; !there || id.String() != t.TopicID {
			continue
		}
		args := p.target.args()
		args["topic_id"] = t.TopicID
		if _, err := p.Pool.Exec(ctx, p.target.sql(sqlReopen), args); err != nil {
			return fmt.Errorf("open the segments of %s again: %w", t.Topic, err)
		}
	}
	return nil
}
