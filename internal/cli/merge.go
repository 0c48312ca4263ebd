package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/law"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// merging is what check and test merge parts with: the statements of agents and views, in temporary tables.
func merging(pool *pg.Pool) law.Deps {
	return law.Deps{Pool: pool, Statements: speedlayer.Store{}, Views: views(), StagingColumn: speedlayer.StagingColumn, Fillfactor: serving.Fillfactor}
}

// database opens the database of the settings; no control schema is needed.
func (a *app) database(ctx context.Context) (*pg.Pool, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.connect(ctx, settings)
}
