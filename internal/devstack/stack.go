package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// loopback is the address on which the embedded servers listen.
const loopback = "127.0.0.1"

// Config configures the stack. Zero fields mean the defaults given.
type Config struct {
	Data        string           // folder of the stack, created if missing
	Brokers     []string         // existing brokers, instead of the embedded one
	DSN         string           // an existing database, instead of a server of our own
	Password    string           // of DSN, if it does not contain it
	Schema      string           // control schema; default kappactl
	PostgresBin string           // folder of the PostgreSQL server binaries; default: searched for
	HTTP        string           // address for the agent; without a port or with port 0, a free one, kept over restarts
	Log         func(string)     // receives one line for people; default: dropped
	Now         func() time.Time // default time.Now
}

// Stack is a running stack. It is immutable.
type Stack struct {
	Brokers    []string
	DSN        string // contains no password
	HTTP       string // address for the agent to listen on
	ConfigPath string // kappactl.yaml, absolute

	embedded *broker          // nil with Config.Brokers
	server   *postgres.Server // nil with Config.DSN
	lock     *lock
}

// Start starts the servers, creates the database and its control schema, and writes the settings file. It returns a
// *job.Refusal if another process uses the folder or PostgreSQL's binaries are missing.
func Start(ctx context.Context, c Config) (*Stack, error) {
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	dir, err := filepath.Abs(c.Data)
	if err != nil {
		return nil, fmt.Errorf("start the stack: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: "the stack's folder cannot be created: " + err.Error(),
			Next: "name a writable folder: --data FOLDER", Err: err,
		}
	}
	held, err := lockFolder(dir, c.Now())
	if err != nil {
		return nil, err
	}
	s := &Stack{lock: held}
	if err := s.start(ctx, dir, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, dir string, c Config) error {
	st, err := readState(dir)
	if err != nil {
		return err
	}
	if err := s.startKafka(dir, c, &st); err != nil {
		return err
	}
	password, err := s.startPostgres(ctx, dir, c, &st)
	if err != nil {
		return err
	}
	if err := migrate(ctx, pg.Config{
		DSN: s.DSN, Password: pg.Password(password), Schema: c.Schema,
		MaxConns: 4,
	}); err != nil {
		return err
	}
	if s.HTTP, err = httpAddress(c, &st); err != nil {
		return err
	}
	if err := st.write(dir); err != nil {
		return err
	}
	return s.writeSettings(dir, c, password)
}

func (s *Stack) startKafka(dir string, c Config, st *state) error {
	if s.Brokers = c.Brokers; len(c.Brokers) > 0 {
		return nil
	}
	var err error
	if s.embedded, err = startBroker(dir, st.ClusterID, st.KafkaPort, c.Log); err != nil {
		return err
	}
	s.Brokers, st.KafkaPort = []string{s.embedded.address}, s.embedded.port
	c.Log("embedded Kafka on " + s.embedded.address + ", for local use only: one node, no replication, no authentication")
	return st.write(dir)
}

func (s *Stack) startPostgres(ctx context.Context, dir string, c Config, st *state) (password string, err error) {
	if c.DSN != "" {
		s.DSN, password, err = splitPassword(c.DSN)
		if c.Password != "" {
			password = c.Password
		}
		return password, err
	}
	if s.server, err = startDatabase(ctx, dir, c, st); err != nil {
		return "", err
	}
	s.DSN, st.PostgresPort = s.server.DSN(databaseName), s.server.Port()
	c.Log(fmt.Sprintf("PostgreSQL on %s:%d; connect with: psql '%s'", loopback, s.server.Port(), s.DSN))
	return "", nil
}

// httpAddress returns the requested address. If it asks for a free port, the port of the last run is used as long as it
// is free.
func httpAddress(c Config, st *state) (string, error) {
	host, port := loopback, "0"
	if c.HTTP != "" {
		var err error
		if host, port, err = net.SplitHostPort(c.HTTP); err != nil {
			return "", refuse("write it as HOST:PORT", "--http %s: %v", c.HTTP, err)
		}
	}
	if port != "" && port != "0" {
		return c.HTTP, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(st.HTTPPort)))
	if err != nil && st.HTTPPort != 0 {
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", fmt.Errorf("find a free port for HTTP: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "", errors.Join(fmt.Errorf("find a free port for HTTP: %v is not a TCP address", l.Addr()), l.Close())
	}
	st.HTTPPort = address.Port
	return net.JoinHostPort(host, strconv.Itoa(address.Port)), l.Close()
}

// Wait returns nil when ctx ends, or an error when one of the stack's servers has ended by itself.
func (s *Stack) Wait(ctx context.Context) error {
	var ended <-chan struct{} // an adopted or existing server is not watched
	if s.server != nil {
		ended = s.server.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return fmt.Errorf("the PostgreSQL server ended by itself (log: %s)", s.server.Log())
	}
}

// Close ends what Start started, data first. Agents that use the stack must have ended before.
func (s *Stack) Close() error {
	var errs []error
	if s.embedded != nil {
		s.embedded.close()
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	return errors.Join(append(errs, s.lock.release())...)
}
