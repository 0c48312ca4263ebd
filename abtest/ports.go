package abtest

import (
	"context"
	"encoding/json"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Serving writes the serving view; implemented by serving.Store.
type Serving interface {
	// Split makes the view show each reader one arm. note gets the contract as it is then, before the last statement.
	Split(ctx context.Context, tx *pg.Tx, c job.ViewSplit, note func(contract json.RawMessage) error) error
	// Switch makes the view read one version.
	Switch(ctx context.Context, tx *pg.Tx, c job.ViewChange, note func(contract json.RawMessage) error) error
}
