package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
)

// Config configures a server. Zero fields mean the defaults given.
type Config struct {
	Bin  Bin
	Data string // folder of the cluster, created if missing; see Folder
	// Port is tried first; if it is 0 or taken, a free port is used.
	Port int
	// Settings are settings of postgresql.conf passed on the command line; {"fsync": "off"} suits tests.
	Settings map[string]string
	// Adopt takes over a running server of this folder instead of returning ErrRunning.
	Adopt bool
	// DieWithParent ends the server immediately when the current process dies (Linux only).
	DieWithParent bool
	// StartTimeout bounds the wait for the server, which may have to recover first; default 60 s.
	StartTimeout time.Duration
}

func (c Config) cluster() string { return filepath.Join(c.Data, clusterFolder) }
func (c Config) log() string     { return filepath.Join(c.Data, logFile) }

// Server is a running server. Its methods must not be called concurrently.
type Server struct {
	config  Config
	port    int
	pid     int
	child   *child // nil if adopted
	adopted bool
}

// startTries bounds how often a start tries another port: another process may take a free port before the server binds
// it.
const startTries = 5

// Start creates the cluster if it is missing and starts its server. It returns when the server accepts connections.
func Start(ctx context.Context, c Config) (*Server, error) {
	var err error
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if err := os.MkdirAll(c.Data, 0o711); err != nil {
		return nil, fmt.Errorf("create the cluster's folder: %w", err)
	}
	acc, err := serverAccount(c.cluster())
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := acc.reaches(c.Bin, c.Data); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := c.initialise(ctx, acc); err != nil {
		return nil, fmt.Errorf("create the PostgreSQL cluster: %w", err)
	}
	if _, err := os.Stat(filepath.Join(c.Data, passFile)); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: the cluster's password is missing, restore it or remove %s: %w", c.Data,
			err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.StartTimeout,
		fmt.Errorf("PostgreSQL is not up after %s (log: %s)", c.StartTimeout, c.log()))
	defer cancel()
	if s, err := c.adopt(ctx); s != nil || err != nil {
		return s, err
	}
	return c.launch(ctx, acc)
}

func (c Config) launch(ctx context.Context, acc *account) (*Server, error) {
	port := c.Port
	for try := 1; ; try++ {
		if port == 0 || !free(port) {
			var err error
			if port, err = freePort(); err != nil {
				return nil, err
			}
		}
		s, err := c.try(ctx, acc, port)
		if err == nil {
			return s, nil
		}
		switch {
		case lingering(err):
			if retry.Sleep(ctx, 5*poll) != nil {
				return nil, errors.Join(context.Cause(ctx), err)
			}
		case ctx.Err() != nil || free(port) || try >= startTries:
			return nil, err // the port was not the cause
		}
	}
}

// lingering reports whether processes of a server whose postmaster was killed are still ending.
func lingering(err error) bool {
	var early *StartError
	return errors.As(err, &early) && strings.Contains(early.Tail, "pre-existing shared memory block")
}

func (c Config) try(ctx context.Context, acc *account, port int) (*Server, error) {
	child, err := startChild(c, acc, c.arguments(port))
	if err != nil {
		return nil, err
	}
	if err := c.awaitReady(ctx, child); err != nil {
		return nil, errors.Join(err, child.end(quit, 5*time.Second))
	}
	return &Server{config: c, port: port, pid: child.pid, child: child}, nil
}

func (c Config) arguments(port int) []string {
	settings := map[string]string{
		"listen_addresses":        host,
		"unix_socket_directories": "",
		"port":                    strconv.Itoa(port),
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_line_prefix":         "%m [%p] ",
		"max_wal_size":            "2GB",
	}
	maps.Copy(settings, c.Settings)
	args := []string{"-D", c.cluster()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// Port returns the server's port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// PID returns the postmaster's process id.
func (s *Server) PID() int { return s.pid }

// Adopted reports whether the server was already running when Start was called.
func (s *Server) Adopted() bool { return s.adopted }

// Log returns the path of the server's log.
func (s *Server) Log() string { return s.config.log() }

// PassFile returns the path of the pgpass file.
func (s *Server) PassFile() string { return filepath.Join(s.config.Data, passFile) }

// DSN returns the connection URL of a database. It contains no password: it names the pgpass file.
func (s *Server) DSN(database string) string { return dsn(s.port, database, s.PassFile()) }

func dsn(port int, database, pass string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(role), Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/" + database,
		RawQuery: url.Values{"passfile": {pass}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

func free(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("find a free port: %v is not a TCP address", l.Addr()), l.Close())
	}
	return addr.Port, l.Close()
}
