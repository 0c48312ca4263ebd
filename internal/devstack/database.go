package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// databaseName is the database that the stack creates.
const databaseName = "kappactl"

// startDatabase starts or adopts the folder's server. st holds the contents of dev.json; the cluster's location is
// stored there before the cluster is created, so that a crash does not lose it.
func startDatabase(ctx context.Context, dir string, c Config, st *state) (*postgres.Server, error) {
	bin, err := postgres.Find(ctx, c.PostgresBin)
	if err != nil {
		return nil, refuseBinaries(err)
	}
	if st.PostgresData == "" || !exists(st.PostgresData) {
		want := filepath.Join(dir, "postgres")
		if st.PostgresData, err = postgres.Folder(bin, want); err != nil {
			return nil, err
		}
		if st.PostgresData != want {
			c.Log(fmt.Sprintf("the account that runs PostgreSQL cannot reach %s; the cluster lives in %s", want,
				st.PostgresData))
		}
		if err := st.write(dir); err != nil {
			return nil, err
		}
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Bin: bin, Data: st.PostgresData, Port: st.PostgresPort, Adopt: true,
	})
	if err != nil {
		return nil, err
	}
	if st.PostgresPort != 0 && st.PostgresPort != server.Port() {
		c.Log(fmt.Sprintf("port %d of PostgreSQL is taken; using %d", st.PostgresPort, server.Port()))
	}
	if server.Adopted() {
		c.Log(fmt.Sprintf("using the PostgreSQL server of this folder that still runs (process %d)", server.PID()))
	}
	if err := server.EnsureDatabase(ctx, databaseName); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return server, nil
}

func refuseBinaries(err error) error {
	var missing *postgres.NotFoundError
	if errors.As(err, &missing) {
		return &job.Refusal{Code: job.ExitUsage, Cause: missing.Error(), Next: missing.Next(), Err: err}
	}
	return &job.Refusal{Code: job.ExitUsage, Cause: err.Error(), Err: err}
}

// migrate upgrades the control schema to this binary's version.
func migrate(ctx context.Context, c pg.Config) error {
	pool, err := pg.Open(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.Migrate(ctx, pool, "")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
