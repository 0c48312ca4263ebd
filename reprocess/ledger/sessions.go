package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// LockTimeout bounds every wait for a lock in this transaction from here on.
func LockTimeout(ctx context.Context, tx *pg.Tx, d time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', @timeout, true)`,
		pgx.NamedArgs{"timeout": fmt.Sprintf("%dms", d.Milliseconds())})
	return Wrap(err, "set lock_timeout")
}

// IdleTimeout bounds how long the transaction may stand still between two statements.
func IdleTimeout(ctx context.Context, tx *pg.Tx, d time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', @timeout, true)`,
		pgx.NamedArgs{"timeout": fmt.Sprintf("%dms", d.Milliseconds())})
	return Wrap(err, "set idle_in_transaction_session_timeout")
}

// Blocker is a session that a flip or a drop waits for. It carries no query text and no data.
type Blocker struct {
	PID         int        `json:"pid"`
	Username    string     `json:"user"`
	Application string     `json:"application"`
	Age         float64    `json:"age_seconds"` // since its transaction began; 0 when that may not be seen
	QueryStart  *time.Time `json:"query_start"` // of its last statement
}

func (b Blocker) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "pid %d", b.PID)
	if b.Username != "" {
		fmt.Fprintf(&s, ", user %s", b.Username)
	}
	if b.Application != "" {
		fmt.Fprintf(&s, ", application %s", b.Application)
	}
	if b.Age > 0 {
		fmt.Fprintf(&s, ", in a transaction for %s", reason.Duration(time.Duration(b.Age*float64(time.Second))))
	}
	if b.QueryStart != nil {
		fmt.Fprintf(&s, ", last statement began %s", b.QueryStart.UTC().Format(time.RFC3339))
	}
	return s.String()
}

// BlockerColumns are the columns of a Blocker, over pg_stat_activity a.
const BlockerColumns = `a.pid, coalesce(a.usename, '') AS username, coalesce(a.application_name, '') AS application,
	coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::double precision AS age, a.query_start`

// Boundary is a moment between transactions: every commit before it is below xid.
type Boundary struct {
	xid string
	at  time.Time
}

// ReadBoundary takes the moment at which a barrier was seen to stand.
func ReadBoundary(ctx context.Context, db pg.DB) (Boundary, error) {
	var l Boundary
	err := db.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text, clock_timestamp()`).Scan(&l.xid, &l.at)
	return l, Wrap(err, "read the current snapshot")
}

// OlderSnapshots are the clients of this database that, in a transaction begun before the line, hold a snapshot older
// than it: they saw one version at another position than the flip shows them. Sessions under our own application name
// are agents at work, not readers. all is false when xact_start of other users may not be seen: the answer can then
// hold transactions begun after the line.
func OlderSnapshots(ctx context.Context, db pg.DB, l Boundary) (found []Blocker, all bool, err error) {
	return snapshots(ctx, db, pgx.NamedArgs{"xid": l.xid, "at": l.at})
}

// ReadersSince are the clients with a snapshot that does not hold the flip by which readers left a version; since is
// when that was. A flip of a release that did not note its transaction is told by the time alone.
func ReadersSince(ctx context.Context, db pg.DB, ref job.Ref, since time.Time) (found []Blocker, all bool, err error) {
	var xid string
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT ((detail ->> 'xid')::numeric + 1)::text FROM kappactl.event
			WHERE job = @job AND kind IN ('promoted', 'rolled_back') AND detail ->> 'from' = @number::text ORDER BY id DESC LIMIT 1), '')`,
		pgx.NamedArgs{"job": string(ref.Job), "number": strconv.Itoa(int(ref.Number))}).Scan(&xid)
	if err != nil {
		return nil, false, fmt.Errorf("read the flip away from %s: %w", ref, err)
	}
	return snapshots(ctx, db, pgx.NamedArgs{"xid": xid, "at": since.Add(SlowLock)})
}

// snapshots are the clients whose snapshot lacks a transaction before xid and was taken in a transaction begun before
// at, as far as that may be seen. Without an xid nothing is known of those whose begin may not be seen.
func snapshots(ctx context.Context, db pg.DB, args pgx.NamedArgs) (found []Blocker, all bool, err error) {
	err = db.QueryRow(ctx, `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`).Scan(&all)
	if err != nil {
		return nil, false, fmt.Errorf("read rights on statistics: %w", err)
	}
	found, err = pg.Structs[Blocker](ctx, db, `SELECT `+BlockerColumns+` FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		  AND coalesce(a.backend_type, 'client backend') = 'client backend'
		  AND coalesce(a.application_name, '') <> current_setting('application_name')
		  AND a.backend_xmin IS NOT NULL
		  AND (@xid::text = '' OR age(a.backend_xmin) > age(nullif(@xid::text, '')::xid8::xid))
		  AND (a.xact_start IS NULL OR a.xact_start < @at::timestamptz)
		ORDER BY a.pid`, args)
	return found, all, Wrap(err, "look for open snapshots")
}

// LockHolders are the sessions that hold a lock on the view, which the flip has to wait for.
func LockHolders(ctx context.Context, db pg.DB, v job.ViewName) ([]Blocker, error) {
	found, err := pg.Structs[Blocker](ctx, db, `SELECT DISTINCT ON (a.pid) `+BlockerColumns+`
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'relation' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND n.nspname = @schema AND c.relname = @view AND a.pid <> pg_backend_pid()
		ORDER BY a.pid`, pgx.NamedArgs{"schema": v.Schema, "view": v.Name})
	return found, Wrap(err, "look for locks on %s", v)
}

// BlockerTexts are the texts of blockers, in the same order.
func BlockerTexts(bs []Blocker) []string {
	out := make([]string, len(bs))
	for i, b := range bs {
		out[i] = b.String()
	}
	return out
}
