package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Row is one generation.
type Row struct {
	ID         int64
	Job        string
	Number     int
	Generation int
	State      State
	Base       *int
	Request    *int64
	Accepted   bool
	Changed    *int64
	Compared   *int64
	Rows       *int64
	Bytes      *int64
	Timings    map[string]float64 // seconds by step; a step that is in it is done
	CutAt      time.Time
	StartedAt  time.Time
	LiveAt     *time.Time
	EndedAt    *time.Time
	LeftAt     *time.Time // when readers were last shown another one
	DroppedAt  *time.Time
	Keep       *job.Keep // of serve.keep when it was computed; nil: all rows were kept
	Error      reason.Reason
	ExitCode   *int
	Trouble    reason.Reason // why its run or its removal is tried again, or what it waits for; zero: nothing
	Paused     bool          // its version is
	Now        time.Time     // the database's clock
}

// Ref is the version.
func (r Row) Ref() job.Ref { return job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)} }

// Done reports whether a step of the run is done.
func (r Row) Done(step string) bool {
	_, done := r.Timings[step]
	return done
}

const columns = `g.id, g.job, g.number, g.generation, g.state, g.base, g.request, g.accepted, g.changed, g.compared, g.rows, g.bytes, g.timings,
       g.cut_at, g.started_at, g.live_at, g.ended_at, g.left_at, g.dropped_at, g.keep, g.error, g.exit_code, clock_timestamp() AS now,
       EXISTS (SELECT FROM kappactl.version v WHERE v.job = g.job AND v.number = g.number AND v.paused_at IS NOT NULL) AS paused,
       CASE WHEN g.state = 'building' THEN coalesce(
            (SELECT nullif(r.trouble, '{}') FROM kappactl.request r WHERE r.id = g.request),
            (SELECT p.trouble FROM kappactl.pace p WHERE p.job = g.job AND p.number = g.number AND p.trouble <> '{}'
                AND p.at > clock_timestamp() - interval '10 s' ORDER BY p.agent LIMIT 1), '{}') ELSE g.trouble END AS trouble
  FROM kappactl.generation g`

func args(ref job.Ref) pgx.NamedArgs {
	return pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}
}

// List are the generations of a version, the newest first.
func List(ctx context.Context, db pg.DB, ref job.Ref) ([]Row, error) {
	found, err := pg.Structs[Row](ctx, db,
		`SELECT `+columns+` WHERE g.job = @job AND g.number = @number ORDER BY g.generation DESC`, args(ref))
	if err != nil {
		return nil, fmt.Errorf("list the generations of %s: %w", ref, err)
	}
	return found, nil
}

// one is the generation that a condition selects; nil when none does.
func one(ctx context.Context, db pg.DB, where string, a pgx.NamedArgs) (*Row, error) {
	found, err := pg.Structs[Row](ctx, db, `SELECT `+columns+` WHERE `+where, a)
	if err != nil {
		return nil, fmt.Errorf("read a generation: %w", err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return &found[0], nil
}

// Read is one generation; nil when there is none of that number.
func Read(ctx context.Context, db pg.DB, ref job.Ref, generation int) (*Row, error) {
	a := args(ref)
	a["generation"] = generation
	return one(ctx, db, `g.job = @job AND g.number = @number AND g.generation = @generation`, a)
}

// ByID is the generation of an id; nil when there is none.
func ByID(ctx context.Context, db pg.DB, id int64) (*Row, error) {
	return one(ctx, db, `g.id = @id`, pgx.NamedArgs{"id": id})
}

// Asked is the generation that a request has begun; nil when it has begun none.
func Asked(ctx context.Context, db pg.DB, request int64) (*Row, error) {
	return one(ctx, db, `g.request = @request`, pgx.NamedArgs{"request": request})
}

// In is the generation of a version that is in a state in which only one can be; nil when none is.
func In(ctx context.Context, db pg.DB, ref job.Ref, s State) (*Row, error) {
	a := args(ref)
	a["state"] = string(s)
	return one(ctx, db, `g.job = @job AND g.number = @number AND g.state = @state ORDER BY g.generation DESC LIMIT 1`, a)
}

// LastFull is when the newest computation from scratch began that a generation builds on: its own, or that of its base.
func LastFull(ctx context.Context, db pg.DB, of Row) (time.Time, error) {
	var at time.Time
	a := args(of.Ref())
	a["generation"] = of.Generation
	err := db.QueryRow(ctx, `WITH RECURSIVE chain AS (
		SELECT generation, base, started_at FROM kappactl.generation WHERE job = @job AND number = @number AND generation = @generation
		UNION ALL
		SELECT g.generation, g.base, g.started_at FROM chain c JOIN kappactl.generation g
		    ON g.job = @job AND g.number = @number AND g.generation = c.base)
		SELECT min(started_at) FROM chain`, a).Scan(&at)
	if err != nil {
		return at, fmt.Errorf("read what generation %d of %s builds on: %w", of.Generation, of.Ref(), err)
	}
	return at, nil
}

// ErrBuilding is that the version has a generation that is being built.
var ErrBuilding = errors.New("another generation of the version is being built")

// New holds the values of a generation that begins.
type New struct {
	Ref     job.Ref
	State   State
	Base    *int // of an incremental one
	Request int64
	Keep    *job.Keep
	Ranges  []Range
}

// Range is the offset range of a partition that a generation covers, with the parts of it that could not be read.
type Range struct {
	job.Frozen
	Unread []job.Range
}

// Next number of a generation: they only grow. The caller has locked the version's row.
const sqlBegin = `
INSERT INTO kappactl.generation (job, number, generation, state, base, request, keep, live_at)
SELECT @job, @number, coalesce((SELECT max(generation) + 1 FROM kappactl.generation WHERE job = @job AND number = @number), 0),
       @state, @base, nullif(@request::bigint, 0), @keep::jsonb, CASE WHEN @state = 'live' THEN clock_timestamp() END
RETURNING generation`

const sqlRanges = `
INSERT INTO kappactl.generation_range (job, number, generation, topic_id, topic, partition, from_offset, to_offset, leader_epoch, unread)
SELECT @job, @number, @generation, r.topic_id, r.topic, r.partition, r.from_offset, r.to_offset, r.leader_epoch, r.unread
  FROM unnest(@topic_ids::uuid[], @topics::text[], @partitions::integer[], @froms::bigint[], @tos::bigint[], @epochs::integer[],
              @unread::text[]::int8multirange[])
       AS r (topic_id, topic, partition, from_offset, to_offset, leader_epoch, unread)`

// Begin writes a generation with what it is to hold, and returns its number: 0 for the first of a version. The caller
// has locked the version's row. ErrBuilding when another one is built.
func Begin(ctx context.Context, tx *pg.Tx, n New) (int, error) {
	a := args(n.Ref)
	a["state"], a["base"], a["request"], a["keep"] = string(n.State), n.Base, n.Request, n.Keep
	var generation int
	err := tx.QueryRow(ctx, sqlBegin, a).Scan(&generation)
	if pg.Code(err) == pgerrcode.UniqueViolation {
		return 0, ErrBuilding
	}
	if err != nil {
		return 0, fmt.Errorf("begin a generation of %s: %w", n.Ref, err)
	}
	var ids, topics, unread []string
	var partitions, epochs []int32
	var froms, tos []int64
	for _, r := range n.Ranges {
		ids, topics, partitions = append(ids, r.TopicID.String()), append(topics, r.Topic), append(partitions, r.ID)
		froms, tos, epochs, unread = append(froms, r.From), append(tos, r.To), append(epochs, r.LeaderEpoch),
			append(unread, multirange(r.Unread))
	}
	a["generation"], a["topic_ids"], a["topics"], a["partitions"] = generation, ids, topics, partitions
	a["froms"], a["tos"], a["epochs"], a["unread"] = froms, tos, epochs, unread
	if _, err := tx.Exec(ctx, sqlRanges, a); err != nil {
		return 0, fmt.Errorf("write the ranges of generation %d of %s: %w", generation, n.Ref, err)
	}
	return generation, nil
}

// multirange is ranges as PostgreSQL writes them.
func multirange(ranges []job.Range) string {
	text := ""
	for i, r := range ranges {
		if i > 0 {
			text += ","
		}
		text += r.String()
	}
	return "{" + text + "}"
}

// Ranges are what a generation holds of each partition, by topic id and partition.
func Ranges(ctx context.Context, db pg.DB, ref job.Ref, generation int) ([]Range, error) {
	type row struct {
		TopicID     string
		Topic       string
		Partition   int32
		FromOffset  int64
		ToOffset    int64
		LeaderEpoch int32
		Unread      string
	}
	a := args(ref)
	a["generation"] = generation
	found, err := pg.Structs[row](ctx, db, `SELECT topic_id::text AS topic_id, topic, partition, from_offset, to_offset, leader_epoch,
			coalesce((SELECT jsonb_agg(jsonb_build_object('from', lower(u), 'to', upper(u)) ORDER BY u) FROM unnest(unread) AS u), '[]')::text AS unread
		FROM kappactl.generation_range WHERE job = @job AND number = @number AND generation = @generation ORDER BY topic_id, partition`, a)
	if err != nil {
		return nil, fmt.Errorf("read the ranges of generation %d of %s: %w", generation, ref, err)
	}
	out := make([]Range, len(found))
	for i, r := range found {
		id, err := job.ParseTopicID(r.TopicID)
		if err != nil {
			return nil, err
		}
		out[i].Partition = job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition}
		out[i].From, out[i].To, out[i].LeaderEpoch = r.FromOffset, r.ToOffset, r.LeaderEpoch
		if err := json.Unmarshal([]byte(r.Unread), &out[i].Unread); err != nil {
			return nil, fmt.Errorf("read the ranges of generation %d of %s: %w", generation, ref, err)
		}
	}
	return out, nil
}

// ErrMoved is that a generation is no longer in the state that was expected.
var ErrMoved = errors.New("the generation is in another state by now")

// Move is a generation that goes to another state, with the moment and the transaction at which it does.
const sqlMove = `
UPDATE kappactl.generation AS g
   SET state = s.to_state, error = coalesce(@error::jsonb, g.error), exit_code = coalesce(@exit_code, g.exit_code),
       live_at = CASE WHEN s.to_state = 'live' THEN clock_timestamp() ELSE g.live_at END,
       left_at = CASE WHEN s.from_state = 'live' THEN clock_timestamp() ELSE g.left_at END,
       left_xid = CASE WHEN s.from_state = 'live' THEN pg_current_xact_id() ELSE g.left_xid END,
       ended_at = CASE WHEN s.to_state IN ('failed', 'retired') THEN coalesce(g.ended_at, clock_timestamp()) ELSE g.ended_at END
  FROM unnest(@from::text[], @to::text[]) AS s (from_state, to_state)
 WHERE g.job = @job AND g.number = @number AND g.generation = @generation AND g.state = s.from_state`

// Move moves a generation by an event; ErrMoved when it has no meaning in the state that the generation is in.
func Move(ctx context.Context, db pg.DB, ref job.Ref, generation int, on Event) error {
	return move(ctx, db, ref, generation, on, nil, nil)
}

// Fail ends a generation that was not shown, with why.
func Fail(ctx context.Context, db pg.DB, ref job.Ref, generation int, code job.ExitCode, why reason.Reason) error {
	exit := int(code)
	return move(ctx, db, ref, generation, CannotGoOn, &exit, why)
}

func move(ctx context.Context, db pg.DB, ref job.Ref, generation int, on Event, exit *int, why any) error {
	a := args(ref)
	from, to := steps(on)
	a["generation"], a["from"], a["to"], a["exit_code"], a["error"] = generation, from, to, exit, why
	tag, err := db.Exec(ctx, sqlMove, a)
	if err != nil {
		return fmt.Errorf("move generation %d of %s: %w", generation, ref, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrMoved
	}
	return nil
}

// Accept makes a refused generation, of which all is there, one that is being built for a request and shown whatever
// differs; ErrMoved when it is not refused any more, ErrBuilding when another one is built.
func Accept(ctx context.Context, db pg.DB, ref job.Ref, generation int, request int64) error {
	a := args(ref)
	from, to := steps(Accepted)
	a["generation"], a["request"], a["from"], a["to"] = generation, request, from, to
	tag, err := db.Exec(ctx, `UPDATE kappactl.generation AS g
		   SET state = s.to_state, request = @request, accepted = true, ended_at = NULL, exit_code = NULL, error = '{}'
		  FROM unnest(@from::text[], @to::text[]) AS s (from_state, to_state)
		 WHERE g.job = @job AND g.number = @number AND g.generation = @generation AND g.state = s.from_state AND g.dropped_at IS NULL`, a)
	switch {
	case pg.Code(err) == pgerrcode.UniqueViolation:
		return ErrBuilding
	case err != nil:
		return fmt.Errorf("accept generation %d of %s: %w", generation, ref, err)
	case tag.RowsAffected() == 0:
		return ErrMoved
	}
	return nil
}
