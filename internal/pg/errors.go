package pg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var errBadDSN = errors.New("the connection string cannot be parsed")

// ConnectError is a database that cannot be used: not there, wrong password, no such database. Its text holds neither
// the connection string nor a password.
type ConnectError struct {
	Host string
	Err  error
}

func newConnectError(c *pgx.ConnConfig, err error) *ConnectError {
	return &ConnectError{Host: net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), Err: plain(c, err)}
}

func (e *ConnectError) Error() string {
	if e.Host == "" {
		return "PostgreSQL: " + e.Err.Error()
	}
	return "PostgreSQL at " + e.Host + ": " + e.Err.Error()
}

// Unwrap gives the chain behind it.
func (e *ConnectError) Unwrap() error { return e.Err }

// badDSN says what is wrong with a connection string, without the string.
func badDSN(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("a file that the connection string names: %s: %w", file.Path, file.Err)
	}
	return errBadDSN
}

// plain says in one line what stands in the way.
func plain(c *pgx.ConnConfig, err error) error {
	var server *pgconn.PgError
	var op *net.OpError
	var lookup *net.DNSError
	var host x509.HostnameError
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &host):
		return fmt.Errorf("the server's certificate is not for this address: %w", host)
	case errors.As(err, &unverified):
		return fmt.Errorf("the server's certificate is not trusted: %w", unverified.Err)
	case errors.As(err, &authority):
		return fmt.Errorf("the server's certificate is not trusted: %w", authority)
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgx has no type for it; a test watches the text
		return errors.New("the server does not speak TLS, and sslmode wants it")
	case errors.As(err, &server):
		switch server.Code {
		case "28000":
			if strings.Contains(server.Message, "no encryption") {
				return fmt.Errorf("the server refuses connections without TLS for user %q: set sslmode=verify-full and sslrootcert", c.User)
			}
			return fmt.Errorf("password or user refused for user %q", c.User)
		case "28P01":
			return fmt.Errorf("password or user refused for user %q", c.User)
		case "3D000":
			return fmt.Errorf("database %q does not exist", c.Database)
		}
		return fmt.Errorf("%s (SQLSTATE %s)", server.Message, server.Code)
	case errors.As(err, &lookup) && !lookup.IsTimeout:
		return fmt.Errorf("host %s is not known", lookup.Name)
	case errors.As(err, &op):
		return op.Err
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer within the connect timeout")
	}
	return errors.New("connection refused or closed")
}

// CommitError is a COMMIT that did not answer "committed": it may or may not have happened.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }

// Unwrap gives the chain behind it.
func (e *CommitError) Unwrap() error { return e.Err }

// Message is what the server said, on one line and without its severity; of any other error the whole text.
func Message(err error) string {
	text := err.Error()
	var server *pgconn.PgError
	if errors.As(err, &server) {
		text = server.Message
	}
	return strings.Join(strings.Fields(text), " ")
}

// Code is the SQLSTATE of err, or empty.
func Code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// Unreachable says that err came from the way to the server or from its shutdown, not from a statement: trying again
// later can help.
func Unreachable(err error) bool {
	var connect *ConnectError
	var op *net.OpError
	if errors.Is(err, errUnanswered) || errors.As(err, &connect) || errors.As(err, &op) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	switch code := Code(err); {
	case code == "":
		return pgconn.Timeout(err) || pgconn.SafeToRetry(err) || errors.Is(err, pgx.ErrTxClosed) || isEOF(err)
	case code[:2] == "08", code[:2] == "57", code == "53300", code == "25P03":
		return code != "57014" // query cancelled by a timeout of ours is not a lost server
	}
	return false
}

// ReadOnly says that the server took no write: it is a standby, or somebody made it read-only. Another server, or the same one
// later, takes it.
func ReadOnly(err error) bool { return Code(err) == "25006" }

// TimedOut says that a statement or a transaction was not done within the time that it had, on either side. The way to the server
// may be down as well; when it is not, less work at once may pass.
func TimedOut(err error) bool {
	switch Code(err) {
	case "57014", "25P04":
		return true
	case "":
		return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// Retryable says that the same transaction may pass when it is run again: serialization failure, deadlock, lock timeout.
func Retryable(err error) bool {
	switch Code(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}
