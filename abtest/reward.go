package abtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Reward is something good or bad that a subject did.
type Reward struct {
	EventID string    `json:"event_id"`
	Subject string    `json:"subject"`
	Value   float64   `json:"value"`
	At      time.Time `json:"ts"`
}

// RewardCode is what became of a reported reward.
type RewardCode string

// What becomes of a reward. Only accepted ones count.
const (
	RewardAccepted  RewardCode = "accepted"
	RewardDuplicate RewardCode = "duplicate" // its event is known
	RewardConflict  RewardCode = "conflict"  // its event is known with another value, which stays
	RewardOrphan    RewardCode = "orphan"    // its subject is not recorded: it is kept until its exposure comes, or its time is over
	RewardBefore    RewardCode = "before_exposure"
	RewardOutside   RewardCode = "outside_window"
	RewardLate      RewardCode = "late" // its subject has been counted
	RewardInvalid   RewardCode = "invalid"
	// RewardNotRunning: no experiment with rewards from this source is open.
	RewardNotRunning RewardCode = "not_running"
)

// ErrUnknownJob is returned for a job that does not exist, or has no version that readers could read.
var ErrUnknownJob = errors.New("no job of that name has a live version")

const (
	maxText = 256 // bytes of a subject or of the id of an event
	ahead   = 5 * time.Minute
	// mostReward bounds a reward, so that the sums of squares are numbers.
	mostReward = 1e100
)

// valid reports whether the reward can count for an experiment with these settings, at a moment.
func (r Reward) valid(s *job.Reward, now time.Time) bool {
	text := func(t string) bool {
		return t != "" && len(t) <= maxText && utf8.ValidString(t) && !containsNUL(t)
	}
	switch {
	case !text(r.EventID) || !text(r.Subject):
		return false
	case math.IsNaN(r.Value) || math.Abs(r.Value) > mostReward:
		return false
	case s.Kind == job.Bernoulli && r.Value != 0 && r.Value != 1:
		return false
	}
	return r.At.Year() >= 1970 && !r.At.After(now.Add(ahead))
}

func containsNUL(t string) bool {
	for i := range len(t) {
		if t[i] == 0 {
			return true
		}
	}
	return false
}

// Record stores rewards that were posted for the open experiment of a job, in one transaction, and returns what became
// of each. Rewards that are recorded again are duplicates: a caller that got no answer may repeat them. The error is
// ErrUnknownJob for a job that does not exist.
func (Store) Record(ctx context.Context, pool *pg.Pool, name job.Name, rewards []Reward) (codes []RewardCode,
	err error,
) {
	err = pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		b, err := openBook(ctx, tx, name)
		switch {
		case err != nil:
			return err
		case b == nil || b.source() != sourceHTTP:
			codes = make([]RewardCode, len(rewards))
			for i := range codes {
				codes[i] = RewardNotRunning
			}
			return nil
		}
		if codes, err = b.judge(ctx, tx, rewards); err != nil {
			return err
		}
		b.count(codes)
		return b.keep(ctx, tx)
	})
	return codes, err
}

// book is where the rewards of a run are written. Its transaction holds the row of kappactl.reward_source, so that
// rewards are stored one batch after the other.
type book struct {
	Job       string
	Run       int
	Settings  job.Experiment
	Offsets   map[string]int64
	Times     map[string]time.Time
	Watermark *time.Time
	ReadAt    *time.Time
	Counts    map[RewardCode]int64
	Now       time.Time // of the database
}

func (b *book) source() string { return b.Settings.Reward.Source.Name() }

// clock is the time up to which rewards have been reported.
func (b *book) clock() time.Time {
	switch {
	case b.source() == sourceHTTP:
		return b.Now
	case b.Watermark == nil:
		return time.Time{}
	case b.Watermark.After(b.Now):
		return b.Now
	}
	return *b.Watermark
}

// openBook locks and reads the book of the open experiment of a job; nil when there is none, or it has no rewards.
func openBook(ctx context.Context, tx *pg.Tx, name job.Name) (*book, error) {
	found, err := pg.Structs[book](ctx, tx, `SELECT s.job, s.run, e.settings, s.offsets, s.times, s.watermark, s.read_at, s.counts, clock_timestamp() AS now
		FROM kappactl.reward_source s JOIN kappactl.experiment e USING (job, run) WHERE s.job = @job AND e.ended_at IS NULL FOR UPDATE OF s`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read the rewards of %s: %w", name, err)
	}
	if len(found) > 0 {
		return &found[0], nil
	}
	known, err := pg.Collect(ctx, tx, pgx.RowTo[int], `SELECT 1 FROM kappactl.job WHERE name = @job`,
		pgx.NamedArgs{"job": string(name)})
	if err == nil && len(known) == 0 {
		err = ErrUnknownJob
	}
	return nil, ledger.Wrap(err, "read the rewards of %s", name)
}

// judge stores rewards and returns what became of each, in their order.
func (b *book) judge(ctx context.Context, tx *pg.Tx, rewards []Reward) ([]RewardCode, error) {
	codes := make([]RewardCode, len(rewards))
	var events, subjects []string
	var values []float64
	var times []time.Time
	var places []int
	for i, r := range rewards {
		if codes[i] = RewardInvalid; r.valid(b.Settings.Reward, b.Now) {
			places = append(places, i)
			events, subjects = append(events, r.EventID), append(subjects, r.Subject)
			values, times = append(values, r.Value), append(times, r.At.UTC())
		}
	}
	type told struct {
		N    int
		Code RewardCode
	}
	args := b.args()
	args["events"], args["subjects"], args["values"], args["times"] = events, subjects, values, times
	found, err := pg.Structs[told](ctx, tx, recordRewards, args)
	if err != nil {
		return nil, fmt.Errorf("store rewards of %s: %w", b.Job, err)
	}
	for _, f := range found {
		codes[places[f.N-1]] = f.Code
	}
	return codes, nil
}

// count adds up what became of rewards.
func (b *book) count(codes []RewardCode) {
	if b.Counts == nil {
		b.Counts = map[RewardCode]int64{}
	}
	for _, c := range codes {
		b.Counts[c]++
	}
}

func (b *book) args() pgx.NamedArgs {
	s := b.Settings.Reward
	return pgx.NamedArgs{
		"job": b.Job, "run": b.Run, "source": b.source(), "clock": b.clock(), "bernoulli": s.Kind == job.Bernoulli,
		"window": pg.Interval(s.Window), "span": pg.Interval(s.Window + s.Grace),
	}
}

// keep writes how far rewards have been read and what became of them.
func (b *book) keep(ctx context.Context, tx *pg.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.reward_source SET counts = @counts, offsets = @offsets, times = @times, watermark = @watermark, read_at = @read
		WHERE job = @job AND run = @run`, pgx.NamedArgs{
		"job": b.Job, "run": b.Run, "counts": document{orEmpty(b.Counts)}, "offsets": document{orEmpty(b.Offsets)},
		"times": document{orEmpty(b.Times)}, "watermark": b.Watermark, "read": b.ReadAt,
	})
	return ledger.Wrap(err, "note the rewards of %s", b.Job)
}

func orEmpty[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}

// statusOf is what becomes of a reward g of a subject with assignment a.
const statusOf = `CASE
	WHEN a.subject IS NULL THEN 'orphan'
	WHEN g.at < a.exposed_at THEN 'before_exposure'
	WHEN g.at >= a.exposed_at + @window::interval THEN 'outside_window'
	WHEN a.exposed_at + @span::interval <= @clock THEN 'late'
	ELSE 'accepted' END`

// addRewards adds the rewards of counted (subject, value) to their assignments.
const addRewards = `UPDATE kappactl.assignment a
	SET reward = CASE WHEN @bernoulli THEN greatest(a.reward, c.most) ELSE a.reward + c.sum END
	FROM (SELECT subject, max(value) AS most, sum(value) AS sum FROM counted GROUP BY subject) c
	WHERE a.job = @job AND a.run = @run AND a.subject = c.subject`

// recordRewards stores each event once: of two with one id in a batch the first. A known one is compared with what is
// stored.
const recordRewards = `WITH given AS (
		SELECT * FROM unnest(@events::text[], @subjects::text[], @values::double precision[], @times::timestamptz[])
			WITH ORDINALITY g(event_id, subject, value, at, n)),
	known AS (SELECT r.event_id, r.value FROM kappactl.reward r
		WHERE r.job = @job AND r.run = @run AND r.source = @source AND r.event_id = ANY (@events::text[])),
	first AS (SELECT DISTINCT ON (event_id) * FROM given WHERE event_id NOT IN (SELECT event_id FROM known) ORDER BY event_id, n),
	judged AS (SELECT g.*, ` + statusOf + ` AS status FROM first g
		LEFT JOIN LATERAL (SELECT * FROM kappactl.assignment a WHERE a.job = @job AND a.run = @run AND a.subject = g.subject LIMIT 1) a ON true),
	stored AS (INSERT INTO kappactl.reward (job, run, source, event_id, subject, value, at, status)
		SELECT @job, @run, @source, event_id, subject, value, at, status FROM judged),
	counted AS (SELECT subject, value FROM judged WHERE status = 'accepted'),
	added AS (` + addRewards + `)
	SELECT g.n, CASE WHEN j.n = g.n THEN j.status
			WHEN coalesce(k.value, j.value) <> g.value THEN 'conflict' ELSE 'duplicate' END AS code
	FROM given g LEFT JOIN known k USING (event_id) LEFT JOIN judged j USING (event_id)`

// adoptOrphans counts the parked rewards of subjects that have been recorded since.
func (b *book) adoptOrphans(ctx context.Context, tx *pg.Tx) error {
	_, err := tx.Exec(ctx, `WITH parked AS MATERIALIZED (SELECT event_id, subject, value, at FROM kappactl.reward
			WHERE job = @job AND run = @run AND status = 'orphan'),
		judged AS (SELECT g.event_id, g.subject, g.value, `+statusOf+` AS status FROM parked g
			CROSS JOIN LATERAL (SELECT * FROM kappactl.assignment a WHERE a.job = @job AND a.run = @run AND a.subject = g.subject LIMIT 1) a),
		moved AS (UPDATE kappactl.reward r SET status = j.status FROM judged j
			WHERE r.job = @job AND r.run = @run AND r.source = @source AND r.event_id = j.event_id),
		counted AS (SELECT subject, value FROM judged WHERE status = 'accepted')
		`+addRewards, b.args())
	return ledger.Wrap(err, "count the parked rewards of %s", b.Job)
}
