package pg

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
)

// Leased describes a table whose rows are owned by lease. It has the columns claim bigint, owner text and lease
// timestamptz. Each claim increments the row's claim. A writer that repeats its claim in a WHERE clause is fenced off
// once it has lost the row.
type Leased struct {
	Table string // for example kappactl.segment
	Key   string // primary key columns, comma-separated
	Order string // ORDER BY of rows to claim; rows are locked in this order
	// Columns are the columns that Claim and Renew return into their T, comma-separated.
	Columns string
	// Wait waits for a row that another transaction has locked instead of skipping it, so that a claim follows a commit
	// in flight and returns the current row.
	Wait bool
}

// Claim claims up to limit unowned rows that satisfy where (SQL over alias r, named arguments) for ttl, and returns the
// updated rows.
func Claim[T any](ctx context.Context, db DB, l Leased, owner string, ttl time.Duration, limit int, where string,
	args pgx.NamedArgs,
) ([]T, error) {
	lock := "FOR UPDATE SKIP LOCKED"
	if l.Wait {
		lock = "FOR UPDATE"
	}
	sql := fmt.Sprintf(`UPDATE %[1]s AS r SET claim = r.claim + 1, owner = @lease_owner, lease = clock_timestamp() +
		@lease_ttl::interval
		WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s AS r
			WHERE %[7]s AND (%[3]s) ORDER BY %[4]s LIMIT @lease_limit %[5]s)
		  AND %[7]s
		RETURNING %[6]s`, l.Table, l.Key, where, l.Order, lock, l.Columns, unheld)
	all := leaseArgs(owner, ttl, args)
	all["lease_limit"] = limit
	return collect[T](ctx, db, "claim", l, sql, all)
}

// unheld is the condition that nobody holds a row.
const unheld = "(r.owner IS NULL OR r.lease < clock_timestamp())"

// Claimable is an expression of SQL: whether Claim would find a row that satisfies where.
func Claimable(l Leased, where string) string {
	return fmt.Sprintf("EXISTS (SELECT FROM %s AS r WHERE %s AND (%s))", l.Table, unheld, where)
}

// Renew extends the leases of rows that owner still holds and that satisfy where, and returns these rows. A row that is
// not returned was lost.
func Renew[T any](ctx context.Context, db DB, l Leased, owner string, ttl time.Duration, where string,
	args pgx.NamedArgs,
) ([]T, error) {
	sql := fmt.Sprintf(`UPDATE %s AS r SET lease = clock_timestamp() + @lease_ttl::interval
		WHERE r.owner = @lease_owner AND (%s) RETURNING %s`, l.Table, where, l.Columns)
	return collect[T](ctx, db, "renew", l, sql, leaseArgs(owner, ttl, args))
}

// Release gives up the rows that owner holds and that satisfy where, so that others can claim them at once.
func Release(ctx context.Context, db DB, l Leased, owner, where string, args pgx.NamedArgs) error {
	sql := fmt.Sprintf(`UPDATE %s AS r SET owner = NULL, lease = NULL WHERE r.owner = @lease_owner AND (%s)`, l.Table,
		where)
	if _, err := db.Exec(ctx, sql, leaseArgs(owner, 0, args)); err != nil {
		return fmt.Errorf("release %s: %w", l.Table, err)
	}
	return nil
}

func leaseArgs(owner string, ttl time.Duration, args pgx.NamedArgs) pgx.NamedArgs {
	all := pgx.NamedArgs{"lease_owner": owner, "lease_ttl": Interval(ttl)}
	maps.Copy(all, args)
	return all
}

func collect[T any](ctx context.Context, db DB, verb string, l Leased, sql string, args pgx.NamedArgs) ([]T, error) {
	out, err := Collect(ctx, db, pgx.RowToStructByNameLax[T], sql, args)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, l.Table, err)
	}
	return out, nil
}
