package pgtest

import (
	"context"
	"errors"
	"os"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
)

// Server is a PostgreSQL server for tests: nothing is synced to disk, and it dies with its parent.
type Server struct {
	// DSN is of the maintenance database, as a superuser.
	DSN string

	server *postgres.Server
	folder string
}

// Start makes a cluster in a temporary folder and starts it.
func Start(ctx context.Context) (*Server, error) {
	bin, err := postgres.Find(ctx, "")
	if err != nil {
		return nil, err
	}
	folder, err := postgres.TempFolder()
	if err != nil {
		return nil, err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Bin: bin, Data: folder, DieWithParent: true,
		Settings: map[string]string{
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
			"max_connections": "300", "shared_buffers": "256MB", "autovacuum_naptime": "10s",
			"max_wal_size": "1GB", // its files may be in memory
		},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &Server{DSN: server.DSN("postgres"), server: server, folder: folder}, nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	return errors.Join(s.server.Stop(), os.RemoveAll(s.folder))
}
