package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// Known is a deployment under its claim, and what is known of its state.
type Known struct {
	ID, Claim int64
	Digest    string // of the state that is known; empty: none is
}

// Fresh is the state of a deployment compared with what was known of it.
type Fresh struct {
	Now   time.Time // the database's clock
	State *State    // nil: the one that is known still holds, or there is an Err
	Err   error     // ErrGone as LoadState has it, or State cannot be decoded
}

// sqlChanged lists the deployments whose state is not the one that is known, and one row with id 0 for the clock.
const sqlChanged = `WITH asked AS (
		SELECT * FROM unnest(@ids::bigint[], @claims::bigint[], @digests::text[]) AS a (id, claim, digest)),
	found AS (
		SELECT d.id, ` + stateDigest + ` AS digest
		FROM asked a JOIN kappactl.deployment d ON d.id = a.id AND d.claim = a.claim
		JOIN kappactl.version v ON v.job = d.job AND v.number = d.number
		JOIN kappactl.job j ON j.name = d.job
		WHERE NOT EXISTS (SELECT 1 FROM kappactl.deployment n WHERE n.job = d.job AND n.number = d.number AND n.id > d.id))
	SELECT a.id, clock_timestamp() AS now
	FROM (TABLE asked UNION ALL SELECT 0, 0, '') AS a LEFT JOIN found f ON f.id = a.id
	WHERE f.digest IS DISTINCT FROM a.digest`

// LoadStates is LoadState for many deployments: one statement compares them with what is known, and one more reads
// those that changed. The answers are in the order of known.
func LoadStates(ctx context.Context, db pg.DB, known []Known) ([]Fresh, error) {
	ids, claims, digests := make([]int64, len(known)), make([]int64, len(known)), make([]string, len(known))
	for i, k := range known {
		ids[i], claims[i], digests[i] = k.ID, k.Claim, k.Digest
	}
	type row struct {
		ID  int64
		Now time.Time
	}
	rows, err := pg.Structs[row](ctx, db, sqlChanged, pgx.NamedArgs{"ids": ids, "claims": claims, "digests": digests})
	if err != nil {
		return nil, fmt.Errorf("compare the states of %d deployments: %w", len(known), err)
	}
	var now time.Time
	changed := map[int64]bool{}
	for _, r := range rows {
		now = r.Now
		if r.ID != 0 {
			changed[r.ID] = true
		}
	}
	states, err := statesOf(ctx, db, slices.Collect(maps.Keys(changed)))
	if err != nil {
		return nil, err
	}
	out := make([]Fresh, len(known))
	for i, k := range known {
		out[i] = Fresh{Now: now}
		if !changed[k.ID] {
			continue
		}
		st := states[k.ID]
		if st == nil || st.Newest != k.ID || st.Held != k.Claim {
			out[i].Err = ErrGone
			continue
		}
		st.Claim = k.Claim
		out[i].State, out[i].Err = st.decoded()
	}
	return out, nil
}

// statesOf reads deployments by id, not decoded.
func statesOf(ctx context.Context, db pg.DB, ids []int64) (map[int64]*State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := pg.Structs[State](ctx, db, stateColumns+`WHERE d.id = ANY(@ids::bigint[])`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read %d deployments: %w", len(ids), err)
	}
	out := make(map[int64]*State, len(rows))
	for i := range rows {
		out[rows[i].ID] = &rows[i]
	}
	return out, nil
}
