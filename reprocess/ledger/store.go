package ledger

import "github.com/kappactl/kappactl/internal/pg"

// Store reads and writes the control tables for commands. It is safe for concurrent use.
type Store struct {
	pool *pg.Pool
}

// NewStore makes a Store on a migrated control schema.
func NewStore(pool *pg.Pool) *Store { return &Store{pool: pool} }
