package reprocess

import (
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

// reader is the read model, under another name than the ledger's Store.
type reader = status.Store

// planner stages and plans, under another name than the ledger's Store.
type planner = plan.Store

// Store holds the operations that commands use. It is safe for concurrent use.
type Store struct {
	*ledger.Store
	*reader
	*planner
	pool *pg.Pool
}

// NewStore makes a Store on a migrated control schema.
func NewStore(pool *pg.Pool) *Store {
	return &Store{
		Store: ledger.NewStore(pool), reader: status.New(pool, status.Config{}), planner: plan.New(pool),
		pool: pool,
	}
}
