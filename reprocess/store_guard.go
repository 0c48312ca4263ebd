package reprocess

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Blocker is a session that a flip or a drop waits for. It carries no query text and no data.
type Blocker struct {
	PID         int
	Username    string
	Application string
	Age         float64    // seconds since its transaction began; 0 when that may not be seen
	QueryStart  *time.Time // of its last statement
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
		fmt.Fprintf(&s, ", in a transaction for %s", words(time.Duration(b.Age*float64(time.Second))))
	}
	if b.QueryStart != nil {
		fmt.Fprintf(&s, ", last statement began %s", b.QueryStart.UTC().Format(time.RFC3339))
	}
	return s.String()
}

const blockerColumns = `a.pid, coalesce(a.usename, '') AS username, coalesce(a.application_name, '') AS application,
	coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::double precision AS age, a.query_start`

// line is a moment between transactions: every commit before it is below xid.
type line struct {
	xid string
	at  time.Time
}

// drawLine takes the moment at which a barrier was seen to stand.
func drawLine(ctx context.Context, db pg.DB) (line, error) {
	var l line
	err := db.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text, clock_timestamp()`).Scan(&l.xid, &l.at)
	return l, wrap(err, "read the current snapshot")
}

// olderSnapshots are the clients of this database that, in a transaction begun before the line, hold a snapshot older
// than it: they saw one version at another position than the flip shows them. Sessions under our own application name
// are agents at work, not readers. all is false when xact_start of other users may not be seen: the answer can then hold
// transactions begun after the line.
func olderSnapshots(ctx context.Context, db pg.DB, l line) (found []Blocker, all bool, err error) {
	err = db.QueryRow(ctx, `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`).Scan(&all)
	if err != nil {
		return nil, false, fmt.Errorf("read rights on statistics: %w", err)
	}
	found, err = collect[Blocker](ctx, db, `SELECT `+blockerColumns+` FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		  AND coalesce(a.backend_type, 'client backend') = 'client backend'
		  AND coalesce(a.application_name, '') <> current_setting('application_name')
		  AND a.backend_xmin IS NOT NULL AND age(a.backend_xmin) > age(@xid::text::xid8::xid)
		  AND (a.xact_start IS NULL OR a.xact_start < @at::timestamptz)
		ORDER BY a.pid`, pgx.NamedArgs{"xid": l.xid, "at": l.at})
	return found, all, wrap(err, "look for open snapshots")
}

// readersSince are the clients with a snapshot whose transaction began before a moment.
func readersSince(ctx context.Context, db pg.DB, at time.Time) ([]Blocker, error) {
	found, err := collect[Blocker](ctx, db, `SELECT `+blockerColumns+` FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		  AND coalesce(a.application_name, '') <> current_setting('application_name')
		  AND a.backend_xmin IS NOT NULL AND a.xact_start < @at::timestamptz
		ORDER BY a.pid`, pgx.NamedArgs{"at": at})
	return found, wrap(err, "look for open snapshots")
}

// lockHolders are the sessions that hold a lock on the view, which the flip has to wait for.
func lockHolders(ctx context.Context, db pg.DB, v job.ViewName) ([]Blocker, error) {
	found, err := collect[Blocker](ctx, db, `SELECT DISTINCT ON (a.pid) `+blockerColumns+`
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'relation' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND n.nspname = @schema AND c.relname = @view AND a.pid <> pg_backend_pid()
		ORDER BY a.pid`, pgx.NamedArgs{"schema": v.Schema, "view": v.Name})
	return found, wrap(err, "look for locks on %s", v)
}

func lines(bs []Blocker) string {
	out := make([]string, len(bs))
	for i, b := range bs {
		out[i] = "\n  " + b.String()
	}
	return strings.Join(out, "")
}
