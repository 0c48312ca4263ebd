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

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var errBadDSN = errors.New("the connection string cannot be parsed")

// ConnectError reports a database that cannot be used: unreachable, wrong password, no such database. Its text contains
// neither the connection string nor a password.
type ConnectError struct {
	Host string
	Err  error
}

// LoginError reports that the server does not accept the user or the password.
type LoginError struct{ User string }

func (e *LoginError) Error() string {
	return fmt.Sprintf("the server refused user %q or the password", e.User)
}

func newConnectError(c *pgx.ConnConfig, err error) error {
	var password *PasswordError
	if errors.As(err, &password) {
		return password
	}
	return &ConnectError{Host: net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), Err: plain(c, err)}
}

func (e *ConnectError) Error() string {
	if e.Host == "" {
		return "PostgreSQL: " + e.Err.Error()
	}
	return "PostgreSQL at " + e.Host + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// badDSN describes the error in a connection string without quoting it.
func badDSN(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("a file that the connection string names: %s: %w", file.Path, file.Err)
	}
	return errBadDSN
}

// plain describes on one line why the connection failed.
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
	case strings.Contains(err.Error(), "server refused TLS connection"):
		// pgx has no type for it; a test guards the text
		return errors.New("the server does not support TLS, which sslmode requires")
	case errors.As(err, &server):
		switch server.Code {
		case pgerrcode.InvalidAuthorizationSpecification:
			if strings.Contains(server.Message, "no encryption") {
				return fmt.Errorf("the server refuses connections without TLS for user %q: set sslmode=verify-full and sslrootcert",
					c.User)
			}
			return &LoginError{User: c.User}
		case pgerrcode.InvalidPassword:
			return &LoginError{User: c.User}
		case pgerrcode.InvalidCatalogName:
			return fmt.Errorf("database %q does not exist", c.Database)
		}
		return fmt.Errorf("%s (SQLSTATE %s) for user %q", server.Message, server.Code, c.User)
	case errors.As(err, &lookup) && !lookup.IsTimeout:
		return fmt.Errorf("host %s is unknown", lookup.Name)
	case errors.As(err, &op):
		return op.Err
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer within the connect timeout")
	}
	return errors.New("connection refused or closed")
}

// CommitError reports a COMMIT whose outcome is unknown.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

// Message returns the server's message on one line and without its severity; for other errors the whole text.
func Message(err error) string {
	text := err.Error()
	var server *pgconn.PgError
	if errors.As(err, &server) {
		text = server.Message
	}
	return strings.Join(strings.Fields(text), " ")
}

// Code returns the SQLSTATE of err, or "".
func Code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// Unreachable reports whether err came from the connection or from the server's shutdown, not from a statement. A later
// retry can help.
func Unreachable(err error) bool {
	var connect *ConnectError
	var refused *pgconn.ConnectError // includes a refused password, which may be in the middle of a rotation
	var password *PasswordError
	var op *net.OpError
	if errors.As(err, &refused) || errors.As(err, &password) {
		return true
	}
	if errors.Is(err, errUnanswered) || errors.As(err, &connect) || errors.As(err, &op) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	switch code := Code(err); {
	case code == "":
		return pgconn.Timeout(err) || pgconn.SafeToRetry(err) || errors.Is(err, pgx.ErrTxClosed) || isEOF(err)
	case pgerrcode.IsConnectionException(code), pgerrcode.IsOperatorIntervention(code),
		code == pgerrcode.TooManyConnections,
		code == pgerrcode.IdleInTransactionSessionTimeout:
		return code != pgerrcode.QueryCanceled // a query cancelled by our own timeout is not a lost server
	}
	return false
}

// ReadOnly reports whether the server refused a write because it is a standby or in read-only mode. Another server may
// accept it, or the same one later.
func ReadOnly(err error) bool { return Code(err) == pgerrcode.ReadOnlySQLTransaction }

// transactionTimeout is the SQLSTATE of transaction_timeout (PostgreSQL 17 and later), which pgerrcode does not define.
const transactionTimeout = "25P04"

// TimedOut reports whether a statement or a transaction exceeded its time limit, on either side. The connection may be
// down as well; if it is not, a smaller amount of work may succeed.
func TimedOut(err error) bool {
	switch Code(err) {
	case pgerrcode.QueryCanceled, transactionTimeout:
		return true
	case "":
		return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// Retryable reports whether the same transaction may succeed if it is run again: serialization failure, deadlock, lock
// timeout.
func Retryable(err error) bool {
	switch Code(err) {
	case pgerrcode.SerializationFailure, pgerrcode.DeadlockDetected, pgerrcode.LockNotAvailable:
		return true
	}
	return false
}
