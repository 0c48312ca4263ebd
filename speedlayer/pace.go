package speedlayer

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/retry"
)

// A replay writes as fast as the database takes it, and others use that database. It goes easy when a commit takes long
// or when a replica falls behind: then each worker reads one piece a second, so that it still comes to an end, until
// what it went easy for is half of its limit again.
const (
	slowCommit   = 500 * time.Millisecond
	farReplica   = 10 * time.Second
	farReplicaBy = 256 << 20 // bytes of write-ahead log
	easyPause    = time.Second
)

const (
	sqlPace = `
INSERT INTO kappactl.pace AS p (job, number, agent, at, brake, broker_throttle, bytes_per_second)
VALUES (@job, @number, @agent, clock_timestamp(), @brake, @throttle, @rate)
ON CONFLICT (job, number, agent) DO UPDATE SET at = excluded.at, brake = excluded.brake, broker_throttle = excluded.broker_throttle,
       bytes_per_second = excluded.bytes_per_second`
	sqlPaceGone = `DELETE FROM kappactl.pace WHERE job = @job AND number = @number AND agent = @agent`
	// sqlReplicas is the replica that is furthest behind. A subscriber of a logical slot is none: it may rightly confirm
	// nothing of what a replay writes. To a role without pg_monitor it tells nothing: the columns are NULL then.
	sqlReplicas = `
SELECT coalesce(r.application_name, '') AS name, coalesce(extract(epoch FROM r.replay_lag), 0)::double precision AS seconds,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn), 0)::bigint AS bytes
  FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
 WHERE s.slot_type IS DISTINCT FROM 'logical'
 ORDER BY greatest(coalesce(extract(epoch FROM r.replay_lag), 0) / @seconds::numeric, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn), 0) / @bytes::numeric) DESC
 LIMIT 1`
	// sqlReaders is over how many agents a version's rate is shared: those that read a segment of it now, and this one.
	sqlReaders = `
SELECT count(DISTINCT owner) FROM (
       SELECT owner FROM {segment}
        WHERE {of} AND state = 'claimed' AND owner IS NOT NULL AND lease >= clock_timestamp()
       UNION SELECT @agent) AS o`
)

// strain is how the database does: what a replay may be too much for.
type strain struct {
	commit         time.Duration
	replica        string
	replicaSeconds float64
	replicaBytes   int64
}

// brake says why to go easy; empty: there is no reason to. What braked before has to come down to half its limit.
func brake(s strain, before string) string {
	limit := 1.0
	if before != "" {
		limit = 0.5
	}
	switch {
	case s.commit.Seconds() > limit*slowCommit.Seconds():
		return fmt.Sprintf("a commit takes %s (over %s)", s.commit.Round(time.Millisecond), slowCommit)
	case s.replicaSeconds > limit*farReplica.Seconds():
		return fmt.Sprintf("replica %s is %.0fs behind (over %s)", s.replica, s.replicaSeconds, farReplica)
	case float64(s.replicaBytes) > limit*farReplicaBy:
		return fmt.Sprintf("replica %s is %d MiB behind (over %d)", s.replica, s.replicaBytes>>20, farReplicaBy>>20)
	}
	return ""
}

// pacer measures what slows a replay down on this agent and writes it where the status is read. The renewal loop owns
// it, but for what is atomic.
type pacer struct {
	*run
	target target
	easy   atomic.Bool  // go easy
	told   atomic.Int64 // nanoseconds that brokers told this run's clients to wait
	read   atomic.Int64 // bytes
	braked string
	commit time.Duration // of the last write
	last   time.Time
	waited int64 // of told, at last
	took   int64 // of read, at last
}

// note checks the database and writes what slows the replay down. workers share the time that brokers tell them to
// wait.
func (p *pacer) note(ctx context.Context, workers int) error {
	now := p.Now()
	if !p.last.IsZero() && now.Sub(p.last) < time.Second {
		return nil
	}
	s := strain{commit: p.commit}
	limits := pgx.NamedArgs{"seconds": farReplica.Seconds(), "bytes": float64(farReplicaBy)}
	if err := p.Pool.QueryRow(ctx, sqlReplicas, limits).Scan(&s.replica, &s.replicaSeconds, &s.replicaBytes); err != nil {
		s.replica, s.replicaSeconds, s.replicaBytes = "", 0, 0 // there is none, or not allowed: unknown
	}
	if p.strained != nil {
		s = p.strained(s)
	}
	before := p.braked
	p.braked = brake(s, before)
	p.easy.Store(p.braked != "")
	if (before == "") != (p.braked == "") {
		p.log.Info("the replay goes easy on PostgreSQL", "for", cmp.Or(p.braked, "no reason any more"))
	}
	args := refArgs(p.ref)
	args["agent"], args["brake"] = p.Agent, p.braked
	args["throttle"], args["rate"] = p.shares(now, workers)
	began := time.Now()
	_, err := p.Pool.Exec(ctx, sqlPace, args)
	p.commit = time.Since(began)
	return err
}

// shares are the share of their time that the workers waited for brokers, and the bytes a second, since the last look.
func (p *pacer) shares(now time.Time, workers int) (throttle, rate float64) {
	told, read := p.told.Load(), p.read.Load()
	if since := now.Sub(p.last); !p.last.IsZero() && since > 0 {
		throttle = float64(told-p.waited) / float64(since.Nanoseconds()) / float64(max(1, workers))
		rate = float64(read-p.took) / since.Seconds()
	}
	p.last, p.waited, p.took = now, told, read
	return min(1, throttle), rate
}

// forget takes back what was written, when this agent no longer replays the version.
func (p *pacer) forget(ctx context.Context) {
	end, cancel := p.finishing(ctx)
	defer cancel()
	args := refArgs(p.ref)
	args["agent"] = p.Agent
	if _, err := p.Pool.Exec(end, sqlPaceGone, args); err != nil {
		p.log.Info("what slowed the replay down stays noted until it is stale", "error", err)
	}
}

// readers is over how many agents the rate is shared.
func (p *pacer) readers(ctx context.Context) (int, error) {
	args := p.target.args()
	args["agent"] = p.Agent
	var n int
	err := p.Pool.QueryRow(ctx, p.target.sql(sqlReaders), args).Scan(&n)
	return max(1, n), err
}

// ease waits when the database needs it.
func (p *pacer) ease(ctx context.Context) error {
	if !p.easy.Load() {
		return nil
	}
	return retry.Sleep(ctx, easyPause)
}
